"""A key in a comment of a manifest or a stack file is found, by file and line, and never shown."""

from pathlib import Path

import yaml

from policies.comments import comments
from policies.manifests import load
from policies.scan import failed, scan
from tests.policies.builders import PROD, fake_key, thing

TEXT = """# head
# two
a: 1 # tail
b: "x # no"
c: |
  text # not a comment
  # nor this
# after the block
d:
  - é # ünï
  - [1, # in a list
     2]
---
# second document
e: 'x'
# last"""


def test_comments_are_found_with_their_lines_and_a_mark_inside_a_value_is_none():
    assert list(comments(TEXT)) == [
        (1, "head\ntwo\ntail"),
        (8, "after the block"),
        (10, "ünï\nin a list"),
        (14, "second document"),
        (16, "last"),
    ]


def written(folder: Path, comment: str) -> Path:
    text = yaml.safe_dump(thing("ConfigMap", data={"a": "b"}))
    file = folder / "some.yaml"
    file.write_text(f"{text}# once\n#\n{comment}\n---\n{text}")
    return file


def test_a_key_in_a_comment_is_found_by_file_and_line_and_not_shown(tmp_path: Path):
    key = fake_key()
    for comment in (
        f"# curl -H 'Authorization: Bearer {key}'",
        f"#apiKey: {key}",
        f"# - name: API_KEY\n#   value: {key}",
    ):
        violations = scan(load(written(tmp_path, comment)), PROD)
        assert failed(violations), comment
        assert all(key not in f"{one}" for one in violations)
        assert {"some.yaml line 8 rest"} == {one.source for one in violations if one.enforcement == "mandatory"}


def test_a_comment_without_a_key_is_no_finding(tmp_path: Path):
    objects = load(written(tmp_path, "# apiKey: its value is in Secrets Manager, never here"))
    assert not failed(scan(objects, PROD))


def test_what_is_no_yaml_has_no_comments():
    assert list(comments("a: [1 # open\n b: }")) in ([], [(1, "open")])
