"""CEL text to tokens: one regular expression, one pass.

A token is (kind, value, offset). Operators and keywords are their own kind. Inside a template the
lexer also finds where the expression ends: the first `}}` outside strings and braces, which is
why the end is not searched for.
"""

from __future__ import annotations

import re
from typing import Any

from perdure.expr.budget import MAX_TEXT
from perdure.expr.errors import ExprError, error_at
from perdure.expr.values import INT_MAX, UINT_MAX, Uint

Token = tuple[str, Any, int]

_TOKEN = re.compile(
    r"""[\t\n\f\r ]*(?://[^\n]*[\t\n\f\r ]*)*
    (?:
      (?P<raw>[bB]?[rR](?:\"{3}(?P<raw1>[\s\S]*?)\"{3}|'{3}(?P<raw2>[\s\S]*?)'{3}
          |\"(?P<raw3>[^\"\n\r]*)\"|'(?P<raw4>[^'\n\r]*)'))
    | (?P<str>[bB]?(?:\"{3}(?P<str1>[^\"\\]*(?:(?:\\[\s\S]|\"(?!\"\"))[^\"\\]*)*)\"{3}
          |'{3}(?P<str2>[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*)'{3}
          |\"(?P<str3>[^\"\\\n\r]*(?:\\.[^\"\\\n\r]*)*)\"
          |'(?P<str4>[^'\\\n\r]*(?:\\.[^'\\\n\r]*)*)'))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
          |\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    | (?P<op>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    | (?P<quoted>`[A-Za-z0-9_./ -]+`)
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)

KEYWORDS = {"true": True, "false": False, "null": None, "in": None}

_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})"
    r"|([0-3][0-7]{2})|([\s\S]|\Z))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def tokenize(text: str, start: int = 0, *, template: bool = False) -> tuple[list[Token], int]:
    """The tokens from `start` on, and the offset after them.

    In a `template` they end at the closing `}}` (the offset is the one after it); otherwise at
    the end of the text. The last token is always ("end", None, offset).
    """
    if len(text) > MAX_TEXT:
        raise error_at(f"the text is longer than {MAX_TEXT} characters", text[:200], 0)
    tokens: list[Token] = []
    match = _TOKEN.match
    at, braces = start, 0
    while True:
        found = match(text, at)
        if found is None:
            raise _unknown(text, at)
        group: str = found.lastgroup or ""
        at = found.end()
        if group == "name":
            value = found[group]
            begin = at - len(value)
            tokens.append((value if value in KEYWORDS else "name", value, begin))
        elif group == "op":
            value = found[group]
            begin = at - len(value)
            if value == "{":
                braces += 1
            elif value == "}":
                braces -= 1
                if template and braces < 0 and text.startswith("}}", begin):
                    tokens.append(("end", None, begin))
                    return tokens, begin + 2
            tokens.append((value, value, begin))
        elif group == "end":
            if template:
                raise error_at("the template has no closing `}}`", text, max(start - 2, 0))
            tokens.append(("end", None, at))
            return tokens, at
        else:
            tokens.append(_literal(text, found, group))


def _literal(text: str, found: re.Match[str], group: str) -> Token:
    begin = found.start(group)
    word = found[group]
    if group == "int":
        return _integer(text, word, begin)
    if group == "float":
        return "float", float(word), begin
    if group == "quoted":
        return "quoted", word[1:-1], begin
    bodies = ("raw1", "raw2", "raw3", "raw4", "str1", "str2", "str3", "str4")
    body = next(found[name] for name in bodies if found[name] is not None)
    is_bytes = word[0] in "bB"
    if group == "str" and "\\" in body:
        unescaped = _unescape(text, body, begin, is_bytes=is_bytes)
        return "bytes" if is_bytes else "string", unescaped, begin
    if is_bytes:
        return "bytes", body.encode("utf-8", "surrogatepass"), begin
    return "string", body, begin


def _integer(text: str, word: str, begin: int) -> Token:
    digits = word.rstrip("uU")
    if len(digits) > 40:
        raise error_at("this integer does not fit 64 bits", text, begin)
    number = int(digits, 16 if digits[:2] == "0x" else 10)
    if len(digits) != len(word):
        if number > UINT_MAX:
            raise error_at("this unsigned integer does not fit 64 bits", text, begin)
        return "uint", Uint(number), begin
    # One more than the largest int: a minus may stand before it; the parser looks.
    if number > INT_MAX + 1:
        raise error_at("this integer does not fit 64 bits", text, begin)
    return "int", number, begin


def _unescape(text: str, body: str, begin: int, *, is_bytes: bool) -> str | bytes:
    out: list[str] = []
    raw = bytearray()
    last = 0
    for found in _ESCAPE.finditer(body):
        plain = body[last : found.start()]
        last = found.end()
        simple, hexa, short, long, octal, other = found.groups()
        if other is not None or (is_bytes and (short or long)):
            raise error_at(f"`{found[0]}` is not an escape of this literal", text, begin)
        if simple is not None:
            char = _SIMPLE.get(simple, simple)
        else:
            number = int(octal, 8) if octal else int(hexa or short or long, 16)
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise error_at(f"`{found[0]}` is not a Unicode character", text, begin)
            char = chr(number)
        if is_bytes:
            raw += plain.encode("utf-8", "surrogatepass")
            raw.append(ord(char))
        else:
            out += (plain, char)
    if is_bytes:
        return bytes(raw + body[last:].encode("utf-8", "surrogatepass"))
    return "".join([*out, body[last:]])


def _unknown(text: str, at: int) -> ExprError:
    rest = text[at:]
    at += len(rest) - len(rest.lstrip("\t\n\f\r "))
    char = text[at : at + 1]
    if char in {'"', "'"}:
        return error_at("this string has no closing quote", text, at)
    hints = {"=": "; equality is `==`", "&": "; and is `&&`", "|": "; or is `||`"}
    return error_at(f"`{char}` means nothing here{hints.get(char, '')}", text, at)
