"""The digest of a release."""

from typing import Any

import pulumi

from components.objects import declare
from components.release import release_digest


def digest_of(declare_stack: Any, value: str, secret: bool = False) -> str:
    seen: list[str] = []

    def program(context: Any) -> None:
        data = {"file": pulumi.Output.secret(value) if secret else value}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": context.metadata("one", "test"), "data": data}
        declare(manifest, pulumi.ComponentResource("test:x:Y", "parent"), context)
        release_digest(context).apply(seen.append)

    declare_stack(program)
    return seen[0]


def test_equal_objects_have_equal_digests(declare_stack: Any):
    assert digest_of(declare_stack, "a") == digest_of(declare_stack, "a")


def test_any_change_of_an_object_is_another_digest(declare_stack: Any):
    assert digest_of(declare_stack, "a") != digest_of(declare_stack, "b")


def test_another_secret_is_another_digest_and_the_digest_itself_is_plain(declare_stack: Any):
    assert digest_of(declare_stack, "a", secret=True) != digest_of(declare_stack, "b", secret=True)


def test_the_digest_is_no_secret(declare_stack: Any):
    seen: list[bool] = []

    def program(context: Any) -> None:
        data = {"file": pulumi.Output.secret("x")}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": context.metadata("one", "test"), "data": data}
        declare(manifest, pulumi.ComponentResource("test:x:Y", "parent"), context)

        async def check() -> None:
            seen.append(await release_digest(context).is_secret())

        pulumi.Output.from_input(check())

    declare_stack(program)
    assert seen == [False]
