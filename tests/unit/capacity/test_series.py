"""Our reader of Prometheus text says what the client library's says, at a fraction of the work."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from capacity.series import Unreadable, series_of

NAMES = st.sampled_from(["m", "m_total", "am", "m:n"])
TEXTS = st.text(alphabet=st.sampled_from('ab"\\{}, =\n#m1é'), max_size=6)
LABELS = st.dictionaries(st.sampled_from(["a", "le", "reason", "b_1"]), TEXTS, max_size=3)
VALUES = st.sampled_from(["0", "1.5", "-2", "1e9", "+Inf", "NaN", "3 1700000000000"])


def written(name: str, labels: dict[str, str], value: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}" if labels else f"{name} {value}"


@given(st.lists(st.tuples(NAMES, LABELS, VALUES), max_size=8))
def test_the_series_of_a_name_are_those_that_the_client_library_finds(lines: list[tuple[str, dict[str, str], str]]):
    page = "# HELP m m is m 3\n" + "".join(written(*line) + "\n" for line in lines)
    expected = [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "m"
    ]
    found = list(series_of(page, "m"))
    assert [labels for labels, _ in found] == [labels for labels, _ in expected]
    assert all(a == b or (math.isnan(a) and math.isnan(b)) for (_, a), (_, b) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    "line", ["m{", 'm{a="b" 1', "m one", "m ", "m{a=b} 1", 'm{a="b"} 1 2 3', 'm x{a="b"} 1', 'm{a="b"}']
)
def test_a_line_that_is_no_series_is_refused(line: str):
    with pytest.raises(Unreadable):
        list(series_of(f"other 1\n{line}\n", "m"))


@given(st.text(max_size=60))
def test_whatever_stands_on_a_page_nothing_else_is_raised(page: str):
    with contextlib.suppress(Unreadable):
        list(series_of(page + "\nm" + page, "m"))
