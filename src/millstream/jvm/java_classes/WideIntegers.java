package millstream;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Integers of 256 bits in 32 bytes, the most significant first. The sign bit of signed ones is inverted, so that both kinds sort as bytes.
 */
public final class WideIntegers {
    private static final int SIZE = 32;
    private static final int DIGITS = 78;
    private static final int LONGEST = 1000;
    private static final BigInteger LIMIT = BigInteger.ONE.shiftLeft(256);
    private static final BigInteger HALF = BigInteger.ONE.shiftLeft(255);

    private WideIntegers() {}

    public static byte[] toU256(UTF8String text) {
        return unsigned(parsed(text, "to_u256"), "to_u256");
    }

    public static byte[] toI256(UTF8String text) {
        return signed(parsed(text, "to_i256"), "to_i256");
    }

    public static UTF8String u256ToString(byte[] value) {
        return UTF8String.fromString(u(value, "u256_to_string").toString());
    }

    public static UTF8String i256ToString(byte[] value) {
        return UTF8String.fromString(i(value, "i256_to_string").toString());
    }

    public static long u256ToBigint(byte[] value) {
        return asLong(u(value, "u256_to_bigint"), "u256_to_bigint");
    }

    public static long i256ToBigint(byte[] value) {
        return asLong(i(value, "i256_to_bigint"), "i256_to_bigint");
    }

    public static byte[] u256Add(byte[] a, byte[] b) {
        byte[] sum = new byte[SIZE];
        require(a, "u256_add");
        require(b, "u256_add");
        long carry = 0;
        for (int at = Platform.BYTE_ARRAY_OFFSET + SIZE - 8; at >= Platform.BYTE_ARRAY_OFFSET; at -= 8) {
            long left = Long.reverseBytes(Platform.getLong(a, at));
            long both = left + Long.reverseBytes(Platform.getLong(b, at));
            long all = both + carry;
            carry = Long.compareUnsigned(both, left) < 0 || Long.compareUnsigned(all, both) < 0 ? 1 : 0;
            Platform.putLong(sum, at, Long.reverseBytes(all));
        }
        if (carry != 0) {
            throw overflow("u256_add");
        }
        return sum;
    }

    public static byte[] u256Sub(byte[] a, byte[] b) {
        return unsigned(u(a, "u256_sub").subtract(u(b, "u256_sub")), "u256_sub");
    }

    public static byte[] u256Mul(byte[] a, byte[] b) {
        return unsigned(u(a, "u256_mul").multiply(u(b, "u256_mul")), "u256_mul");
    }

    public static byte[] u256Div(byte[] a, byte[] b) {
        return unsigned(u(a, "u256_div").divide(divisor(u(b, "u256_div"), "u256_div")), "u256_div");
    }

    public static byte[] u256Mod(byte[] a, byte[] b) {
        return unsigned(u(a, "u256_mod").mod(divisor(u(b, "u256_mod"), "u256_mod")), "u256_mod");
    }

    public static byte[] i256Add(byte[] a, byte[] b) {
        return signed(i(a, "i256_add").add(i(b, "i256_add")), "i256_add");
    }

    public static byte[] i256Sub(byte[] a, byte[] b) {
        return signed(i(a, "i256_sub").subtract(i(b, "i256_sub")), "i256_sub");
    }

    public static byte[] i256Mul(byte[] a, byte[] b) {
        return signed(i(a, "i256_mul").multiply(i(b, "i256_mul")), "i256_mul");
    }

    public static byte[] i256Div(byte[] a, byte[] b) {
        return signed(i(a, "i256_div").divide(divisor(i(b, "i256_div"), "i256_div")), "i256_div");
    }

    public static byte[] i256Mod(byte[] a, byte[] b) {
        return signed(i(a, "i256_mod").remainder(divisor(i(b, "i256_mod"), "i256_mod")), "i256_mod");
    }

    public static byte[] i256Neg(byte[] a) {
        return signed(i(a, "i256_neg").negate(), "i256_neg");
    }

    public static byte[] i256Abs(byte[] a) {
        return signed(i(a, "i256_abs").abs(), "i256_abs");
    }

    private static BigInteger parsed(UTF8String text, String function) {
        String value = text.toString().trim();
        try {
            if (value.length() > LONGEST) {
                throw new NumberFormatException();
            }
            boolean negative = value.startsWith("-");
            String digits = negative ? value.substring(1) : value;
            if (digits.startsWith("0x") || digits.startsWith("0X")) {
                BigInteger found = new BigInteger(checked(digits.substring(2)), 16);
                return negative ? found.negate() : found;
            }
            BigDecimal number = new BigDecimal(value);
            if ((long) number.precision() - number.scale() > DIGITS) {
                throw overflow(function);
            }
            if (number.stripTrailingZeros().scale() > 0) {
                throw new NumberFormatException();
            }
            return number.toBigIntegerExact();
        } catch (NumberFormatException error) {
            throw Refusal.of(function + ": '" + shortened(value) + "' is no integer");
        }
    }

    private static String checked(String digits) {
        if (digits.startsWith("-") || digits.startsWith("+")) {
            throw new NumberFormatException();
        }
        return digits;
    }

    private static String shortened(String value) {
        return value.length() > 100 ? value.substring(0, 100) + "…" : value;
    }

    private static BigInteger u(byte[] value, String function) {
        return new BigInteger(1, require(value, function));
    }

    private static BigInteger i(byte[] value, String function) {
        return new BigInteger(inverted(require(value, function)));
    }

    private static byte[] require(byte[] value, String function) {
        if (value.length != SIZE) {
            throw Refusal.of(function + ": an argument has " + value.length + " bytes instead of 32: it was not made by "
                    + "`to_u256` or `to_i256`");
        }
        return value;
    }

    private static BigInteger divisor(BigInteger value, String function) {
        if (value.signum() == 0) {
            throw Refusal.of(function + ": division by zero");
        }
        return value;
    }

    private static byte[] unsigned(BigInteger value, String function) {
        if (value.signum() < 0 || value.compareTo(LIMIT) >= 0) {
            throw overflow(function);
        }
        return filled(value, (byte) 0);
    }

    private static byte[] signed(BigInteger value, String function) {
        if (value.compareTo(HALF) >= 0 || value.compareTo(HALF.negate()) < 0) {
            throw overflow(function);
        }
        return inverted(filled(value, (byte) (value.signum() < 0 ? -1 : 0)));
    }

    private static byte[] filled(BigInteger value, byte first) {
        byte[] given = value.toByteArray();
        int length = Math.min(given.length, SIZE);
        byte[] bytes = new byte[SIZE];
        Arrays.fill(bytes, first);
        System.arraycopy(given, given.length - length, bytes, SIZE - length, length);
        return bytes;
    }

    private static byte[] inverted(byte[] value) {
        byte[] copied = (byte[]) value.clone();
        copied[0] ^= (byte) 0x80;
        return copied;
    }

    private static long asLong(BigInteger value, String function) {
        if (value.bitLength() > 63) {
            throw overflow(function);
        }
        return value.longValue();
    }

    private static RuntimeException overflow(String function) {
        return Refusal.of(function + ": overflow");
    }
}
