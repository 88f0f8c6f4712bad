"""The channel's graphs: valid queries, and every declared price in the spend."""

from components.context import Context
from components.scaling.monitoring import dashboard
from rules.channel_panels import Price, channel_panels
from rules.metrics.lint import lint_query
from tests.envoy.stacks import stack


def test_every_query_uses_metrics_that_exist():
    for panel in channel_panels("llm", 1000, [Price("GLM-5", 2, 8)]):
        assert lint_query(panel.title, panel.query) == []


def test_spend_is_tokens_times_price_and_missing_where_no_price_is_declared():
    spend = channel_panels("llm", 1000, [Price("GLM-5", 2, 8), Price("free", 0, 0)])[-1].query
    assert 'envoy_moonstack_prompt_tokens{namespace="llm",served_by="channel/GLM-5"}[1d])) * 2e-06' in spend
    assert 'envoy_moonstack_completion_tokens{namespace="llm",served_by="channel/GLM-5"}[1d])) * 8e-06' in spend
    assert "free" not in spend
    assert len(channel_panels("llm", 1000, [])) == 2


def test_the_quota_that_is_left_counts_down_from_the_contract():
    assert channel_panels("llm", 1234, [])[1].query.startswith("1234 - ")


def test_the_dashboard_shows_the_channel_only_where_there_is_one():
    context = Context(
        stack="test", environment="dev", namespace="test", images={},
        provider=None,  # pyright: ignore[reportArgumentType]: pure builders don't use it
    )  # fmt: skip
    shown, hidden = (str(dashboard(settings, context)) for settings in (stack(channel={}), stack()))
    assert "Channel quota left" in shown and "Channel quota left" not in hidden
