"""What the program declares for the key agent."""

from datetime import UTC, datetime

from capacity.keys.config import AgentConfig, AgentKey
from components.key_agent import KeyAgent
from rules import names
from rules.channel_panels import Price
from settings.keys import KeySettings
from tests.unit.pulumi_engine import deploy, holds_secret, plain

CONFIG = AgentConfig(namespace="llm", keys=(AgentKey(id="app", secrets=("key-app-1", "key-app-2")),))


def objects(config: AgentConfig = CONFIG):
    found = deploy(lambda context: KeyAgent("key-agent", config, context))
    return {one.type.rpartition(":")[2]: one for one in found if one.type.startswith("kubernetes:")}


def rules(config: AgentConfig = CONFIG):
    return plain(objects(config)["Role"].inputs["rules"])


def test_the_agent_reads_its_versions_by_name_and_only_writes_the_gateways_list():
    secrets = {tuple(rule["verbs"]): rule["resourceNames"] for rule in rules() if "secrets" in rule["resources"]}
    assert secrets == {("get",): ["key-app-1", "key-app-2"], ("patch",): [names.CLIENT_KEYS]}


def test_without_a_version_no_secret_may_be_read():
    assert not [
        rule
        for rule in rules(AgentConfig(namespace="llm", keys=()))
        if "get" in rule["verbs"] and "secrets" in rule["resources"]
    ]


def test_nothing_of_the_agent_is_secret():
    assert not [name for name, one in objects().items() if name != "kubernetes" and holds_secret(one.inputs)]


def test_the_agent_reads_client_keys_alone_and_is_told_every_keys_times_and_quotas():
    begin, end = datetime(2029, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    keys = [
        KeySettings(id="app", purpose="client", owner="x", expires=end, tokens_per_day=5),
        KeySettings(id="coder", purpose="client", owner="x", channel_key="coding", not_before=begin),
        KeySettings(id="channel", purpose="fallback", owner="x", expires=end, spend_per_day=7),
    ]
    versions = [("app", "key-app-1"), ("channel", "key-channel-1")]
    app, coder, channel = AgentConfig.of("llm", keys, versions, "channel", [Price("GLM-5", 2, 8)]).keys
    assert (app.secrets, app.expires, app.tokens_per_day, app.pays_with) == (("key-app-1",), end, 5, "channel")
    assert (coder.pays_with, coder.not_before) == ("coding", begin)
    assert (channel.secrets, channel.expires, channel.spend_per_day, channel.pays_with) == ((), end, 7, None)


def test_a_new_version_rolls_the_agent():
    def digest(config):
        template = plain(objects(config)["Deployment"].inputs["spec"])["template"]
        return template["metadata"]["annotations"]

    assert digest(CONFIG) != digest(AgentConfig(namespace="llm", keys=(AgentKey(id="app", secrets=("key-app-3",)),)))
