"""The order of a table, as it is written: ``by="name, qty desc nulls last"`` or ``by=["name", ("qty", "descending", "at_end")]``."""

from __future__ import annotations

import re
from typing import List, Sequence, Tuple, Union

from ._errors import BadKey

#: A column, or a column and its words.
Key = Union[str, Sequence[str]]
#: An argument ``by``.
By = Union[str, Sequence[Key]]

# A name in quotes, where two quotes are one; a comma; or a word.
_TOKEN = re.compile(r'\s*(?:"((?:[^"]|"")+)"|(,)|([^\s",]+))')

_DIRECTIONS = {"asc": False, "ascending": False, "desc": True, "descending": True}
_PLACES = {"at_start": False, "nulls first": False, "at_end": True, "nulls last": True}
_WORDS = "asc, desc, nulls first, nulls last (or ascending, descending, at_start, at_end)"


def keys_of(by: By) -> List[Tuple[str, bool, bool]]:
    """Name, whether descending, and whether nulls are last, of each column."""
    if isinstance(by, str):
        terms = _terms(by)
    elif isinstance(by, Sequence):
        # A tuple of words such as ("qty", "descending") is one key to pyarrow, and a list of names to others.
        terms = [_term(key) for key in by]
    else:
        raise TypeError(f"by: a text or a list of columns, not {type(by).__name__}")
    if not terms:
        raise BadKey("by: names no column")
    return [_key(name, words) for name, words in terms]


def _terms(text: str) -> List[Tuple[str, List[str]]]:
    terms: List[Tuple[str, List[str]]] = []
    at, wanted = 0, True
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise BadKey(f"by: {text[at:]!r} has a quote without an end")
        at = found.end()
        quoted, comma, word = found.groups()
        if comma:
            if wanted:
                raise BadKey(f"by: {text!r} has a comma without a column in front of it")
            wanted = True
        elif wanted:
            terms.append((quoted.replace('""', '"') if quoted else word, []))
            wanted = False
        elif quoted:
            raise BadKey(f"by: {quoted!r} follows a column without a comma")
        else:
            terms[-1][1].append(word)
    if wanted and terms:
        raise BadKey(f"by: {text!r} ends with a comma")
    return terms


def _term(key: Key) -> Tuple[str, List[str]]:
    if isinstance(key, str):
        return key, []
    if not isinstance(key, Sequence) or not key or not all(isinstance(word, str) for word in key):
        raise BadKey(f"by: {key!r} is neither a column nor a column and its words")
    return key[0], list(key[1:])


def _key(name: str, words: Sequence[str]) -> Tuple[str, bool, bool]:
    descending = last = None
    rest = [word.lower() for word in words]
    while rest:
        two, one = " ".join(rest[:2]), rest[0]
        if one in _DIRECTIONS and descending is None:
            descending, rest = _DIRECTIONS[one], rest[1:]
        elif one in _PLACES and last is None:
            last, rest = _PLACES[one], rest[1:]
        elif two in _PLACES and last is None:
            last, rest = _PLACES[two], rest[2:]
        elif one in _DIRECTIONS or one in _PLACES or two in _PLACES:
            raise BadKey(f"by: column {name!r} has two words for the same: {' '.join(words)!r}")
        else:
            what = f"by: {one!r} behind column {name!r} is unknown; the words are {_WORDS}"
            raise BadKey(f'{what}; put a name with spaces into double quotes, or give a list of names')
    return name, bool(descending), bool(last)
