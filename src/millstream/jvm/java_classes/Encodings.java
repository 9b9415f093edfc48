package millstream;

import java.math.BigInteger;
import org.apache.spark.unsafe.types.UTF8String;

/** Bytes, numbers and places as text. */
public final class Encodings {
    private static final String BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    private static final String BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz";
    private static final BigInteger FIFTY_EIGHT = BigInteger.valueOf(58);
    private static final int LONGEST = 12;

    private Encodings() {}

    public static UTF8String toBase58(byte[] data) {
        int zeros = 0;
        while (zeros < data.length && data[zeros] == 0) {
            zeros++;
        }
        StringBuilder text = new StringBuilder();
        for (BigInteger rest = new BigInteger(1, data); rest.signum() > 0; ) {
            BigInteger[] parts = rest.divideAndRemainder(FIFTY_EIGHT);
            text.append(BASE58.charAt(parts[1].intValue()));
            rest = parts[0];
        }
        for (int i = 0; i < zeros; i++) {
            text.append('1');
        }
        return UTF8String.fromString(text.reverse().toString());
    }

    public static byte[] fromBase58(UTF8String encoded) {
        String text = encoded.toString();
        int zeros = 0;
        while (zeros < text.length() && text.charAt(zeros) == '1') {
            zeros++;
        }
        BigInteger value = BigInteger.ZERO;
        for (int i = zeros; i < text.length(); i++) {
            int digit = BASE58.indexOf(text.charAt(i));
            if (digit < 0) {
                throw Refusal.of("from_base58: '" + text.charAt(i) + "' at position " + (i + 1) + " is no digit of base 58");
            }
            value = value.multiply(FIFTY_EIGHT).add(BigInteger.valueOf(digit));
        }
        byte[] given = value.signum() == 0 ? new byte[0] : value.toByteArray();
        int sign = given.length > 0 && given[0] == 0 ? 1 : 0;
        byte[] data = new byte[zeros + given.length - sign];
        System.arraycopy(given, sign, data, zeros, given.length - sign);
        return data;
    }

    public static UTF8String convertBase(UTF8String digits, int from, int to) {
        if (from < 2 || from > 36 || to < 2 || to > 36) {
            throw Refusal.of("convert_base: a base is between 2 and 36");
        }
        try {
            return UTF8String.fromString(new BigInteger(digits.toString().trim(), from).toString(to));
        } catch (NumberFormatException error) {
            throw Refusal.of("convert_base: '" + digits + "' is no number of base " + from);
        }
    }

    public static UTF8String geohash(double latitude, double longitude, int length) {
        if (!(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 180)) {
            throw Refusal.of("geohash: latitude is between -90 and 90, longitude between -180 and 180");
        }
        if (length < 1 || length > LONGEST) {
            throw Refusal.of("geohash: the length is between 1 and 12");
        }
        double[] low = {-180, -90};
        double[] high = {180, 90};
        double[] place = {longitude, latitude};
        StringBuilder text = new StringBuilder();
        for (int i = 0, digit = 0; i < 5 * length; i++) {
            int axis = i % 2;
            double middle = (low[axis] + high[axis]) / 2;
            boolean upper = place[axis] >= middle;
            digit = digit << 1 | (upper ? 1 : 0);
            (upper ? low : high)[axis] = middle;
            if (i % 5 == 4) {
                text.append(BASE32.charAt(digit));
                digit = 0;
            }
        }
        return UTF8String.fromString(text.toString());
    }

    public static double geohashLatitude(UTF8String hash) {
        return centre(hash)[1];
    }

    public static double geohashLongitude(UTF8String hash) {
        return centre(hash)[0];
    }

    private static double[] centre(UTF8String hash) {
        String text = hash.toString().toLowerCase(java.util.Locale.ROOT);
        if (text.isEmpty() || text.length() > LONGEST) {
            throw Refusal.of("geohash: the length is between 1 and 12");
        }
        double[] low = {-180, -90};
        double[] high = {180, 90};
        for (int i = 0; i < 5 * text.length(); i++) {
            int digit = BASE32.indexOf(text.charAt(i / 5));
            if (digit < 0) {
                throw Refusal.of("geohash: '" + text.charAt(i / 5) + "' is no digit of a geohash");
            }
            int axis = i % 2;
            double middle = (low[axis] + high[axis]) / 2;
            ((digit >> (4 - i % 5) & 1) == 1 ? low : high)[axis] = middle;
        }
        return new double[] {(low[0] + high[0]) / 2, (low[1] + high[1]) / 2};
    }
}
