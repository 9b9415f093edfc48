"""The functions that Millstream adds to Spark's SQL. `millstream functions` lists them, `make docs` writes their page, a test runs every
example, and `python -m tools.jar` writes what the JVM needs of them into the archive of Java classes.

Where Spark has an expression for it, a function is another name for that expression; otherwise it is a static method in Java, which
Spark's generated code calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

NULLS = "null if an argument is null"


@dataclass(frozen=True)
class Expression:
    """A native expression; `_1` is the first argument, `_all` are all, `_each:f` are the values of `f` for each."""

    text: str


@dataclass(frozen=True)
class Method:
    """A static method of a class in `jvm/java_classes`."""

    name: str
    types: str
    """The types of its arguments and of its result, as Spark's DDL, separated by `;`"""


_TIMES = """'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", 'timestampNTZFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSS\""""
"""Options of `to_json`: Spark cuts microseconds unless it is told."""


@dataclass(frozen=True)
class OwnFunction:
    """A function of SQL."""

    name: str
    arguments: str
    """Names and types, as they are shown. `…`: any number."""
    returns: str
    summary: str
    made: Expression | Method
    examples: tuple[tuple[str, str], ...]
    """A call and its value, as Spark prints it."""
    nulls: str = NULLS
    aliases: tuple[str, ...] = ()

    @cached_property
    def counts(self) -> tuple[int, int | None]:
        """The least and the most arguments."""
        names = [each for each in self.arguments.split(", ") if each]
        if "…" in names:
            return len(names) - 1, None
        return len(names), len(names)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def call(self) -> str:
        return f"{self.name}({self.arguments})"


def _wide(kind: str) -> list[OwnFunction]:
    """The functions of one kind of 256-bit integers."""
    signed = kind == "i256"
    a, shown = ("a", "signed") if signed else ("an", "unsigned")
    verbs = {
        "add": ("a + b", "40", "2", "42"),
        "sub": ("a - b", "44", "2", "42"),
        "mul": ("a · b", "21", "2", "42"),
        "div": ("a / b, rounded towards zero", "85", "2", "42"),
        "mod": ("The rest of a / b" + (", with the sign of a" if signed else ""), "85", "43", "42"),
    }
    found = [
        OwnFunction(
            f"to_{kind}",
            "text string",
            "binary",
            f"The {shown} 256-bit integer that a text shows, decimal or as `0x…`; numbers are taken as well. The result has 32 bytes, "
            "and compares and sorts as the number does.",
            Method(f"WideIntegers.to{kind.upper()}", "STRING;BINARY"),
            ((f"{kind}_to_string(to_{kind}('0x2a'))", "42"), (f"to_{kind}(10) > to_{kind}('9')", "true")),
            f"{NULLS}; another text is an error, and so is a number that does not fit",
        ),
        OwnFunction(
            f"{kind}_to_string",
            "value binary",
            "string",
            f"The decimal digits of {a} {shown} 256-bit integer.",
            Method(f"WideIntegers.{kind}ToString", "BINARY;STRING"),
            (
                (
                    f"{kind}_to_string(to_{kind}('{'-' if signed else ''}12345678901234567890123'))",
                    f"{'-' if signed else ''}12345678901234567890123",
                ),
            ),
        ),
        OwnFunction(
            f"{kind}_to_bigint",
            "value binary",
            "bigint",
            f"{a.title()} {shown} 256-bit integer as a BIGINT.",
            Method(f"WideIntegers.{kind}ToBigint", "BINARY;BIGINT"),
            ((f"{kind}_to_bigint(to_{kind}('42'))", "42"),),
            f"{NULLS}; a number that does not fit is an error",
            ("to_int64",) if signed else (),
        ),
    ]
    for verb, (what, left, right, value) in verbs.items():
        name = f"{kind}_{verb}"
        example = f"{kind}_to_string({name}(to_{kind}('{left}'), to_{kind}('{right}')))"
        wrong = "a result that does not fit is an error" if verb not in ("div", "mod") else "division by zero is an error"
        method = Method(f"WideIntegers.{kind}{verb.title()}", "BINARY;BINARY;BINARY")
        found.append(OwnFunction(name, "a binary, b binary", "binary", f"{what}.", method, ((example, value),), f"{NULLS}; {wrong}"))
    return found


def _signs() -> list[OwnFunction]:
    wrong = f"{NULLS}; a result that does not fit is an error"
    return [
        OwnFunction(
            f"i256_{verb}",
            "value binary",
            "binary",
            what,
            Method(f"WideIntegers.i256{verb.title()}", "BINARY;BINARY"),
            ((f"i256_to_string(i256_{verb}(to_i256(-5)))", "5"),),
            wrong,
        )
        for verb, what in (("neg", "The number with the other sign."), ("abs", "The number without its sign."))
    ]


_HASHES = [
    OwnFunction(
        "keccak256",
        "data binary",
        "string",
        "The Keccak-256 hash as Ethereum uses it, as hexadecimal digits. SHA-3 of the same length is another hash.",
        Expression("lower(hex(keccak256_binary(_1)))"),
        (("keccak256('Transfer(address,address,uint256)')", "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),),
        aliases=("_gs_keccak256",),
    ),
    OwnFunction(
        "keccak256_binary",
        "data binary",
        "binary",
        "The Keccak-256 hash as 32 bytes.",
        Method("Digests.keccak256", "BINARY;BINARY"),
        (("hex(substr(keccak256_binary(''), 1, 4))", "C5D24601"),),
    ),
    OwnFunction(
        "xxhash3_128",
        "data binary",
        "string",
        "The 128-bit hash XXH3 without a seed, as hexadecimal digits: fast, and not for secrets. Spark's `xxhash64` has 64 bits.",
        Expression("lower(hex(xxhash3_128_binary(_1)))"),
        (("xxhash3_128('Millstream')", "c2a47e509e7bf792b75be0242fad2228"),),
        aliases=("_gs_xxhash",),
    ),
    OwnFunction(
        "xxhash3_128_binary",
        "data binary",
        "binary",
        "The 128-bit hash XXH3 as 16 bytes.",
        Method("XxHash3.hash128", "BINARY;BINARY"),
        (("length(xxhash3_128_binary('a'))", "16"),),
    ),
]

_BASES = [
    OwnFunction(
        "to_base58",
        "data binary",
        "string",
        "Bytes in base 58, with the digits that Bitcoin uses.",
        Method("Encodings.toBase58", "BINARY;STRING"),
        (("to_base58('Hello World!')", "2NEpo7TZRRrLZSi2U"), ("to_base58(X'0000ff')", "115Q")),
        aliases=("_gs_to_base58",),
    ),
    OwnFunction(
        "from_base58",
        "text string",
        "binary",
        "The bytes that a text in base 58 shows.",
        Method("Encodings.fromBase58", "STRING;BINARY"),
        (("CAST(from_base58('2NEpo7TZRRrLZSi2U') AS STRING)", "Hello World!"), ("hex(from_base58('115Q'))", "0000FF")),
        f"{NULLS}; another character is an error",
        ("_gs_from_base58",),
    ),
    OwnFunction(
        "to_base64url",
        "data binary",
        "string",
        "Bytes in base 64 for addresses: `-` and `_` instead of `+` and `/`, and no `=` at the end.",
        Expression("rtrim('=', translate(base64(_1), '+/\\r\\n', '-_'))"),
        (("to_base64url(X'fbefff')", "--__"), ("to_base64url('a')", "YQ")),
    ),
    OwnFunction(
        "from_base64url",
        "text string",
        "binary",
        "The bytes that a text in base 64 for addresses shows, with or without `=` at the end.",
        Expression(
            "to_binary(rpad(translate(rtrim('=', _1), '-_', '+/'), 4 * CAST(ceil(length(rtrim('=', _1)) / 4) AS INT), '='), 'base64')"
        ),
        (("hex(from_base64url('--__'))", "FBEFFF"), ("CAST(from_base64url('YQ') AS STRING)", "a")),
        f"{NULLS}; another character is an error",
    ),
    OwnFunction(
        "hex_to_binary",
        "text string",
        "binary",
        "The bytes that hexadecimal digits show, with or without `0x` before them.",
        Expression("to_binary(regexp_replace(_1, '^0[xX]', ''), 'hex')"),
        (("hex_to_binary('0xCAFE') = X'CAFE'", "true"),),
        f"{NULLS}; another character is an error",
        ("_gs_hex_to_byte",),
    ),
    OwnFunction(
        "binary_to_hex",
        "data binary",
        "string",
        "Bytes as `0x` and hexadecimal digits. Spark's `hex` writes them without `0x`, in capital letters.",
        Expression("concat('0x', lower(hex(CAST(_1 AS BINARY))))"),
        (("binary_to_hex(X'CAFE')", "0xcafe"),),
        aliases=("_gs_byte_to_hex",),
    ),
    OwnFunction(
        "convert_base",
        "digits string, from int, to int",
        "string",
        "A whole number of any length in another base, from 2 to 36. Spark's `conv` returns wrong values beyond 64 bits.",
        Method("Encodings.convertBase", "STRING;INT;INT;STRING"),
        (("convert_base('ffffffffffffffffffff', 16, 10)", "1208925819614629174706175"), ("convert_base('-101', 2, 10)", "-5")),
        f"{NULLS}; another digit is an error",
        ("_gs_conv_base",),
    ),
]

_ARRAYS = [
    OwnFunction(
        "array_enumerate",
        "values array",
        "array<struct<index: int, value>>",
        "The elements with their positions, which begin with 0.",
        Expression("transform(_1, (__element, __index) -> named_struct('index', __index, 'value', __element))"),
        (("array_enumerate(array('a', 'b'))", '[{"index":0,"value":"a"},{"index":1,"value":"b"}]'),),
    ),
    OwnFunction(
        "array_filter_in",
        "values array, allowed array",
        "array",
        "The elements that another array has too, each as often as it was there.",
        Expression("filter(_1, __element -> array_contains(_2, __element))"),
        (("array_filter_in(array('a', 'b', 'a'), array('a', 'c'))", '["a","a"]'),),
        "null if the first array is null; null elements are left out",
    ),
    OwnFunction(
        "array_struct_field",
        "values array<struct>, field string",
        "array",
        "One field of each struct. The name is a constant.",
        Expression("transform(_1, __element -> __element[_2])"),
        (("array_struct_field(array(named_struct('a', 1), named_struct('a', 2)), 'a')", "[1,2]"),),
        "null if the array is null",
    ),
    OwnFunction(
        "split_index",
        "text string, separator string, index int",
        "string",
        "A part of a text between separators. The first part has the index 0.",
        Expression("CASE WHEN _3 >= 0 THEN get(split(_1, concat('\\\\Q', _2, '\\\\E')), _3) END"),
        (("split_index('a.b.c', '.', 1)", "b"), ("split_index('a.b.c', '.', 7)", "NULL")),
        f"{NULLS}, or there is no such part",
    ),
]

_JSON_NULLS = f"{NULLS}, the text is no JSON, or the path finds nothing"
_PATH = "Paths have the steps `.name`, `['name']`, `[0]`, `[*]` and `.*`; a path that cannot be read is an error."
_JSON = [
    OwnFunction(
        "json_value",
        "json string, path string",
        "string",
        f"The text, number or boolean at a path. Spark's `get_json_object` returns objects and arrays as well. {_PATH}",
        Method("JsonPaths.value", "STRING;STRING;STRING"),
        (("json_value('{\"a\": {\"b\": [1, 2.50]}}', '$.a.b[1]')", "2.50"), ("json_value('{\"a\": {}}', '$.a')", "NULL")),
        f"{_JSON_NULLS}, more than one value, or an object or array",
    ),
    OwnFunction(
        "json_query",
        "json string, path string",
        "string",
        f"The object or array at a path, as JSON. {_PATH}",
        Method("JsonPaths.query", "STRING;STRING;STRING"),
        (("json_query('{\"a\": {\"b\": [1, 2]}}', '$.a')", '{"b":[1,2]}'), ("json_query('{\"a\": 1}', '$.a')", "NULL")),
        f"{_JSON_NULLS}, more than one value, or a text, number or boolean",
    ),
    OwnFunction(
        "json_exists",
        "json string, path string",
        "boolean",
        f"Whether a path finds something; `false` for a text that is no JSON. {_PATH}",
        Method("JsonPaths.exists", "STRING;STRING;BOOLEAN"),
        (("json_exists('{\"a\": null}', '$.a')", "true"), ("json_exists('{', '$.a')", "false")),
    ),
    OwnFunction(
        "is_json",
        "text string",
        "boolean",
        "Whether a text is JSON.",
        Expression("CASE WHEN _1 IS NOT NULL THEN try_parse_json(_1) IS NOT NULL END"),
        (("is_json('[1]')", "true"), ("is_json('[1')", "false")),
    ),
    OwnFunction(
        "json_object",
        "name string, value, …",
        "string",
        "A JSON object of names and values. Names are constants; nulls are kept.",
        Expression(f"to_json(named_struct(_all), map('ignoreNullFields', 'false', {_TIMES}))"),
        (("json_object('a', 1, 'b', array('x', NULL), 'c', NULL)", '{"a":1,"b":["x",null],"c":null}'),),
        "never null",
    ),
    OwnFunction(
        "json_object_absent_on_null",
        "name string, value, …",
        "string",
        "The same without fields that are null.",
        Expression(f"to_json(named_struct(_all), map('ignoreNullFields', 'true', {_TIMES}))"),
        (("json_object_absent_on_null('a', 1, 'b', CAST(NULL AS INT))", '{"a":1}'),),
        "never null",
    ),
    OwnFunction(
        "json_array",
        "value, …",
        "string",
        "A JSON array of values, which may have different types.",
        Expression("concat('[', array_join(array(_each:json_element), ','), ']')"),
        (("json_array(1, 'a', NULL, array(true))", '[1,"a",null,[true]]'),),
        "never null",
    ),
    OwnFunction(
        "json_element",
        "value",
        "string",
        "A value as JSON, and null as `null`.",
        Expression("coalesce(json_quote(_1), 'null')"),
        (("json_element(NULL)", "null"),),
        "never null",
    ),
    OwnFunction(
        "json_quote",
        "value",
        "string",
        "A value as JSON.",
        Expression(
            f"CASE WHEN _1 IS NOT NULL THEN regexp_extract("
            f"to_json(array(_1), map('ignoreNullFields', 'false', {_TIMES})), '(?s)^.(.*).$', 1) END"
        ),
        (("json_quote('say \"a\"')", '"say \\"a\\""'), ("json_quote(named_struct('a', 1))", '{"a":1}')),
    ),
    OwnFunction(
        "json_unquote",
        "json string",
        "string",
        "The text that a JSON string shows.",
        Expression("json_value(_1, '$')"),
        (("json_unquote('\"a\\\\u0041\"')", "aA"),),
        f"{NULLS}, or the text is no JSON string, number or boolean",
    ),
]

_ADDRESSES = [
    OwnFunction(
        f"url_{part}",
        "url string",
        "string",
        f"The {what} of an address.",
        Expression(f"try_parse_url(_1, '{spark}')"),
        ((f"url_{part}('https://ann@a.example:8080/b/c?d=1#e')", value),),
        f"{NULLS}, the text is no address, or it has no {what}",
    )
    for part, what, spark, value in (
        ("protocol", "protocol", "PROTOCOL", "https"),
        ("host", "host", "HOST", "a.example"),
        ("path", "path", "PATH", "/b/c"),
        ("query", "query", "QUERY", "d=1"),
        ("fragment", "fragment", "REF", "e"),
    )
] + [
    OwnFunction(
        "url_parameter",
        "url string, name string",
        "string",
        "The value of a parameter in the query of an address, decoded.",
        Expression("try_url_decode(try_parse_url(_1, 'QUERY', _2))"),
        (("url_parameter('https://a.example/?q=a%20b&r=2', 'q')", "a b"),),
        f"{NULLS}, the text is no address, or it has no such parameter",
    ),
]

_PLACES = [
    OwnFunction(
        "geohash",
        "latitude double, longitude double, length int",
        "string",
        "The geohash of a place, with 1 to 12 characters. Places with the same first characters are near each other.",
        Method("Encodings.geohash", "DOUBLE;DOUBLE;INT;STRING"),
        (("geohash(57.64911, 10.40744, 11)", "u4pruydqqvj"),),
        f"{NULLS}; degrees that are no place are an error",
    ),
    OwnFunction(
        "geohash_decode",
        "hash string",
        "struct<latitude: double, longitude: double>",
        "The middle of the area that a geohash names.",
        Expression("named_struct('latitude', geohash_latitude(_1), 'longitude', geohash_longitude(_1))"),
        (("round(geohash_decode('ezs42').latitude, 3)", "42.605"),),
        "the fields are null if the argument is null; another character is an error",
    ),
    OwnFunction(
        "geohash_latitude",
        "hash string",
        "double",
        "The latitude of the middle of the area that a geohash names.",
        Method("Encodings.geohashLatitude", "STRING;DOUBLE"),
        (("round(geohash_latitude('ezs42'), 3)", "42.605"),),
        f"{NULLS}; another character is an error",
    ),
    OwnFunction(
        "geohash_longitude",
        "hash string",
        "double",
        "The longitude of the middle of the area that a geohash names.",
        Method("Encodings.geohashLongitude", "STRING;DOUBLE"),
        (("round(geohash_longitude('ezs42'), 3)", "-5.603"),),
        f"{NULLS}; another character is an error",
    ),
]

GROUPS: dict[str, tuple[OwnFunction, ...]] = {
    "Hashes": tuple(_HASHES),
    "Bases": tuple(_BASES),
    "Unsigned 256-bit integers": tuple(_wide("u256")),
    "Signed 256-bit integers": (*_wide("i256"), *_signs()),
    "Arrays and texts": tuple(_ARRAYS),
    "JSON": tuple(_JSON),
    "Addresses": tuple(_ADDRESSES),
    "Places": tuple(_PLACES),
}
OWN_FUNCTIONS: dict[str, OwnFunction] = {name: each for group in GROUPS.values() for each in group for name in each.names}
"""Name, also an alias, → function."""


def as_called(text: str) -> str:
    """Spark's text of an expression with the functions under their names: `static_invoke(millstream.Encodings.fromBase58(s))` is
    `from_base58(s)`.
    """
    while (begin := text.find(_INVOKED)) >= 0:
        method, bracket, rest = text[begin + len(_INVOKED) :].partition("(")
        end = _end_of(rest)
        name = _NAMES.get(method)
        if not bracket or name is None or rest[end : end + 2] != "))":
            return text
        text = f"{text[:begin]}{name}({rest[: end + 1]}{rest[end + 2 :]}"
    return text


def _end_of(text: str) -> int:
    """Where the bracket closes that is open at the beginning."""
    depth, quote = 1, ""
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'`":
            quote = char
        else:
            depth += (char == "(") - (char == ")")
            if not depth:
                return place
    return -1


_INVOKED = "static_invoke(millstream."
_NAMES = {each.made.name: name for name, each in reversed(OWN_FUNCTIONS.items()) if isinstance(each.made, Method)}


def table_for_java() -> str:
    """What `SqlFunctions.java` reads: a line for each name."""
    lines = []
    for name, each in OWN_FUNCTIONS.items():
        least, most = each.counts
        text, types = (each.made.text, "") if isinstance(each.made, Expression) else (each.made.name, each.made.types)
        lines.append("\t".join([name, str(least), "" if most is None else str(most), text, types]))
    return "\n".join(lines) + "\n"
