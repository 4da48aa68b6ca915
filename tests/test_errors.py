"""The page of errors shows what each call says, word by word."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")
CALLS = re.findall(r"^\| `(.+)` \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def data():
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1), names)
    return names


def test_the_page_lists_many_errors():
    assert len(CALLS) > 40
    assert len(CALLS) == len(set(CALLS))


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[call for call, _ in CALLS])
def test_calls_say_what_the_page_shows(data, call, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        eval(call, data)
    assert " ".join(str(caught.value).split()) == message
