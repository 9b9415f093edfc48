"""Hashes and bases of numbers are equal to those of Python's libraries, for data of many lengths."""

from __future__ import annotations

import base64
import hashlib
import random

import pyarrow as pa
import pytest
import xxhash
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MASK = (1 << 64) - 1
LENGTHS = [*range(0, 300), 511, 512, 513, 1023, 1024, 1025, 1088, 2048, 2049, 5000]
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def data() -> list[bytes]:
    chance = random.Random(7)
    return [chance.randbytes(length) for length in LENGTHS]


def computed(spark: SparkSession, data: list[bytes], *calls: str) -> list[tuple[object, ...]]:
    frame = spark.createDataFrame(pa.table({"n": range(len(data)), "data": pa.array(data, pa.binary())})).repartition(1)
    return [tuple(row)[1:] for row in sorted(frame.selectExpr("n", *calls).collect())]


def keccak(data: bytes, padding: int) -> str:
    """A slow Keccak with a rate of 136 bytes and 32 bytes of digest, written from its specification."""
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for power in range(7):
            if register & 1:
                constant |= 1 << ((1 << power) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    rotations, x, y = {(0, 0): 0}, 1, 0
    for step in range(24):
        rotations[x, y] = (step + 1) * (step + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    padded = bytearray(data + bytes(136 - len(data) % 136))
    padded[len(data)] ^= padding
    padded[-1] ^= 0x80
    lanes = {(x, y): 0 for x in range(5) for y in range(5)}
    for start in range(0, len(padded), 136):
        for place in range(17):
            lanes[place % 5, place // 5] ^= int.from_bytes(padded[start + 8 * place : start + 8 * place + 8], "little")
        for constant in constants:
            sums = [lanes[x, 0] ^ lanes[x, 1] ^ lanes[x, 2] ^ lanes[x, 3] ^ lanes[x, 4] for x in range(5)]
            lanes = {(x, y): lane ^ sums[x - 1] ^ turned(sums[(x + 1) % 5], 1) for (x, y), lane in lanes.items()}
            lanes = {(y, (2 * x + 3 * y) % 5): turned(lane, rotations[x, y]) for (x, y), lane in lanes.items()}
            lanes = {(x, y): lane ^ (~lanes[(x + 1) % 5, y] & lanes[(x + 2) % 5, y] & MASK) for (x, y), lane in lanes.items()}
            lanes[0, 0] ^= constant
    return b"".join(lanes[place, 0].to_bytes(8, "little") for place in range(4)).hex()


def turned(lane: int, places: int) -> int:
    return (lane << places | lane >> (64 - places)) & MASK if places else lane


def test_hashes_are_those_of_other_implementations(spark: SparkSession, data: list[bytes]) -> None:
    found = computed(spark, data, "keccak256(data)", "xxhash3_128(data)")
    assert [xxhash.xxh3_128_hexdigest(each) for each in data] == [hash_ for _, hash_ in found]
    for place in (0, 1, 31, 135, 136, 137, 271, 272, 273, 299):
        assert keccak(data[place], 0x06) == hashlib.sha3_256(data[place]).hexdigest(), "the oracle is right"
        assert found[place][0] == keccak(data[place], 0x01)


def test_bases_there_and_back(spark: SparkSession, data: list[bytes]) -> None:
    data = [*data[:80], *(bytes(zeros) + b"\x01" for zeros in range(5))]
    names = ("to_base58(data)", "from_base58(to_base58(data))", "to_base64url(data)", "from_base64url(to_base64url(data))")
    found = computed(spark, data, *names, "hex_to_binary(binary_to_hex(data))")
    for each, (base58, back58, url, back_url, back_hex) in zip(data, found, strict=True):
        assert bytes(back58) == bytes(back_url) == bytes(back_hex) == each  # type: ignore[arg-type]  # they are bytes
        assert base58 == in_base_58(each)
        assert url == base64.urlsafe_b64encode(each).decode().rstrip("=")


def in_base_58(data: bytes) -> str:
    number, digits = int.from_bytes(data), ""
    while number:
        number, digit = divmod(number, 58)
        digits = DIGITS[digit] + digits
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + digits


def test_numbers_in_other_bases(spark: SparkSession) -> None:
    for base in (2, 7, 16, 36):
        for number in (0, 35, 2**64, -(3**80)):
            text = spark.sql(f"SELECT convert_base('{number}', 10, {base})").collect()[0][0]
            assert int(text, base) == number


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("from_base58('1l')", "from_base58: 'l' at position 2 is no digit of base 58"),
        ("from_base64url('a!b')", "CONVERSION_INVALID_INPUT"),
        ("hex_to_binary('0xzz')", "CONVERSION_INVALID_INPUT"),
        ("convert_base('12', 2, 10)", "convert_base: '12' is no number of base 2"),
        ("convert_base('12', 1, 10)", "convert_base: a base is between 2 and 36"),
        ("geohash(91, 0, 5)", "geohash: latitude is between -90 and 90"),
        ("geohash(CAST('NaN' AS DOUBLE), 0, 5)", "geohash: latitude"),
        ("geohash(1, 1, 13)", "geohash: the length is between 1 and 12"),
        ("geohash_latitude('a')", "geohash: 'a' is no digit of a geohash"),
    ],
)
def test_what_is_wrong_is_an_error(spark: SparkSession, call: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        spark.range(2).selectExpr(f"{call} AS found", "id").collect()
