"""A rotation, killed at every step: it goes on, no moment is without a valid key, and the old one is gone in the end."""

import secrets
from datetime import UTC, datetime, timedelta

import pytest
from moto import mock_aws

from rotation.run import Rotation, RotationError
from rotation.stores import LocalStore, SecretsManagerStore
from rules.fingerprint import fingerprint
from settings.keys import KeySettings

INBOUND = KeySettings(id="app", purpose="client", owner="shop")
OUTBOUND = KeySettings(id="app", purpose="fallback", owner="gateway")


def fresh() -> str:
    return "sk-" + secrets.token_hex(24)


class Killed(BaseException):
    """The process is gone."""


class World:
    """Counts every call that changes or asks something, and dies at the one that it is told."""

    def __init__(self, store, key: KeySettings) -> None:
        self.store, self.key = store, key
        self.accepted_values: set[str] = set()
        self.secrets: set[str] = set()
        """Values of the versions' own Secrets."""
        self.calls, self.kill_at = 0, 0
        self.after = False
        self.history: list[set[str]] = []
        self.refuse: str | None = None
        self.last_use: datetime | None = None

    def step(self, act):
        """One call: the process dies before it, or right after it took effect."""
        self.calls += 1
        if self.calls == self.kill_at and not self.after:
            raise Killed
        result = act()
        if self.calls == self.kill_at and self.after:
            raise Killed
        return result

    def read(self, ids):
        return self.store.read(ids)

    def put(self, key_id, stage, value):
        return self.step(lambda: self.store.put(key_id, stage, value))

    def promote(self, key_id):
        return self.step(lambda: self.store.promote(key_id))

    def drop(self, key_id, stage):
        return self.step(lambda: self.store.drop(key_id, stage))

    def changed(self, key_id):
        return self.store.changed(key_id)

    def fingerprints(self, key):
        return {fingerprint(value) for value in self.accepted_values}

    def kept(self, key):
        return {fingerprint(value) for value in self.secrets}

    def deploy(self):
        """What is new comes first, and what is gone goes last, as Pulumi does it."""
        versions = self.store.read([self.key.id])[self.key.id]

        def act():
            self.accepted_values = {versions["current"]} if self.key.outbound else set(versions.values())
            self.history.append(set(self.accepted_values))

        self.step(act)
        self.step(lambda: self.secrets.update(versions.values()))
        self.step(lambda: self.secrets.intersection_update(versions.values()))

    def unseen_since(self, key, versions):
        return self.last_use

    def accepted(self, key, value, stage):
        def act():
            if self.refuse:
                return self.refuse
            channel = key.outbound and stage == "next"
            return None if channel or value in self.accepted_values else "gateway-1 refuses it"

        return self.step(act)


@pytest.fixture(params=["local", "secretsManager"])
def store(request, tmp_path, monkeypatch):
    if request.param == "local":
        yield LocalStore(tmp_path / "keys")
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        made = SecretsManagerStore("dev", "moonstack/", "us-east-1")
        made.client().create_secret(Name=made.name("app"))
        yield made


def world_with(store, key: KeySettings) -> tuple[World, str]:
    old = fresh()
    store.put("app", "current", old)
    world = World(store, key)
    world.deploy()
    world.calls = 0
    return world, old


def rotation(world: World, new: str, **how) -> Rotation:
    options = {"overlap": timedelta(0), "proof_seconds": 0.0, "sleep": lambda _: None} | how
    return Rotation(world.key, world, world, lambda: new, lambda _: None, lambda _: None, **options)


@pytest.mark.parametrize("key", [INBOUND, OUTBOUND], ids=["inbound", "outbound"])
def test_a_rotation_ends_with_the_new_key_alone(store, key):
    world, _ = world_with(store, key)
    new = fresh()
    assert rotation(world, new).run() is True
    assert store.read(["app"]) == {"app": {"current": new}}
    assert world.accepted_values == {new}
    assert world.secrets == {new}, "no Secret keeps the old one"


def test_both_versions_are_accepted_before_the_new_one_is_used(store):
    world, old = world_with(store, INBOUND)
    new = fresh()
    rotation(world, new).run()
    assert world.history == [{old}, {old, new}, {new}]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("key", [INBOUND, OUTBOUND], ids=["inbound", "outbound"])
def test_a_rotation_killed_at_every_step_goes_on_and_never_leaves_a_moment_without_a_valid_key(store, key, after):
    world, _ = world_with(store, key)
    for kill_at in range(1, 20):
        new = fresh()
        before = store.read(["app"])["app"]["current"]
        world.calls, world.kill_at, world.after = 0, kill_at, after
        try:
            rotation(world, new).run()
        except Killed:
            used = store.read(["app"])["app"]["current"]
            assert world.accepted_values & {before, used}, f"killed at {kill_at}: neither version is accepted"
            world.kill_at = 0
            rotation(world, fresh(), finish_only=True).run()
        else:
            assert kill_at > 5, "the rotation had fewer steps than were to be killed"
            break
        versions = store.read(["app"])["app"]
        assert list(versions) == ["current"], f"killed at {kill_at}"
        assert world.accepted_values == {versions["current"]}, f"killed at {kill_at}"
        assert world.secrets == {versions["current"]}, f"killed at {kill_at}: a Secret keeps a version that is gone"
    else:
        pytest.fail("a rotation has more steps than were killed")


def test_without_force_the_old_version_stays_until_the_overlap_is_over(store):
    world, old = world_with(store, INBOUND)
    new = fresh()
    assert rotation(world, new, overlap=timedelta(hours=1)).run() is False
    assert world.accepted_values == {old, new}
    assert store.read(["app"])["app"] == {"current": new, "previous": old}
    assert rotation(world, fresh(), overlap=timedelta(hours=1)).run() is False, "nothing new is begun meanwhile"
    assert rotation(world, fresh(), overlap=timedelta(hours=1), force=True).run() is True
    assert world.accepted_values == {new}


def test_an_old_version_that_is_still_used_stays_after_the_overlap_unless_it_is_forced(store):
    world, old = world_with(store, INBOUND)
    new, hour = fresh(), timedelta(hours=1)
    rotation(world, new, overlap=hour).run()
    store.changed = lambda key_id: datetime.now(UTC) - 5 * hour
    world.last_use = datetime.now(UTC) - hour / 2
    said: list[str] = []
    one = rotation(world, fresh(), overlap=hour)
    one.say = said.append
    assert one.run() is False
    assert world.accepted_values == {old, new}
    assert (world.last_use + hour).isoformat(timespec="seconds") in said[-1]
    world.last_use = datetime.now(UTC) - hour
    assert rotation(world, fresh(), overlap=hour).run() is True
    assert world.accepted_values == {new}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_rotation_that_is_killed_at_every_step_never_drops_a_version_in_use(store, after):
    world, _ = world_with(store, INBOUND)
    for kill_at in range(1, 20):
        used = store.read(["app"])["app"]["current"]
        world.calls, world.kill_at, world.after = 0, kill_at, after
        world.last_use = datetime.now(UTC)
        ended = False
        try:
            rotation(world, fresh(), overlap=timedelta(hours=1)).run()
            ended = True
        except Killed:
            world.kill_at = 0
            rotation(world, fresh(), overlap=timedelta(hours=1), finish_only=True).run()
        assert used in world.accepted_values, f"killed at {kill_at}: the version in use is gone"
        world.kill_at, world.last_use = 0, datetime.now(UTC) - timedelta(hours=2)
        store_changed, store.changed = store.changed, lambda key_id: None
        assert rotation(world, fresh(), overlap=timedelta(hours=1), finish_only=True).run() is True
        store.changed = store_changed
        assert len(world.accepted_values) == 1
        if ended:
            assert kill_at > 3, "the rotation had fewer steps than were to be killed"
            return
    pytest.fail("a rotation has more steps than were killed")


def test_a_store_that_does_not_know_the_time_goes_by_what_the_cluster_saw(store):
    """The stack's configuration has no times: the version's own age and its use tell when the old one may go."""
    world, _ = world_with(store, INBOUND)
    store.changed = lambda key_id: None
    assert rotation(world, fresh(), overlap=timedelta(hours=1)).run() is False
    world.last_use = datetime.now(UTC) - timedelta(hours=1)
    assert rotation(world, fresh(), overlap=timedelta(hours=1)).run() is True


def test_a_gateway_that_does_not_accept_the_new_key_stops_it_and_takes_nothing_away(store):
    world, old = world_with(store, INBOUND)
    world.refuse = "pod gateway-7 answers 401"
    with pytest.raises(RotationError, match="pod gateway-7 answers 401; nothing was taken away"):
        rotation(world, fresh()).run()
    assert old in world.accepted_values
    assert store.read(["app"])["app"]["current"] == old


def test_the_same_value_again_is_refused(store):
    world, old = world_with(store, INBOUND)
    with pytest.raises(RotationError, match="is the old one"):
        rotation(world, old).run()


def test_a_deployment_of_another_stack_is_noticed(store):
    world, _ = world_with(store, INBOUND)
    world.deploy = lambda: None
    with pytest.raises(RotationError, match="right stack"):
        rotation(world, fresh()).run()


def test_a_key_without_a_current_version_cannot_be_rotated(tmp_path):
    world = World(LocalStore(tmp_path), INBOUND)
    with pytest.raises(RotationError, match="no current version"):
        rotation(world, fresh()).run()


def test_no_step_says_a_value(store):
    world, old = world_with(store, INBOUND)
    new, said = fresh(), []
    one = rotation(world, new)
    one.say = said.append
    one.run()
    assert said
    assert not any(old in line or new in line for line in said)
