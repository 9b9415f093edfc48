package millstream;

/** The 128-bit hash XXH3 without a seed, as its specification describes it. */
public final class XxHash3 {
    private static final long P32_1 = 0x9E3779B1L;
    private static final long P32_2 = 0x85EBCA77L;
    private static final long P32_3 = 0xC2B2AE3DL;
    private static final long P64_1 = 0x9E3779B185EBCA87L;
    private static final long P64_2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P64_3 = 0x165667B19E3779F9L;
    private static final long P64_4 = 0x85EBCA77C2B2AE63L;
    private static final long P64_5 = 0x27D4EB2F165667C5L;
    private static final long MIX_1 = 0x165667919E3779F9L;
    private static final long MIX_2 = 0x9FB21C651E98DF25L;
    private static final int STRIPE = 64;
    private static final int STRIPES = 16;
    private static final byte[] SECRET = secret(
            "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
            + "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
            + "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e");

    private long low;
    private long high;

    private XxHash3() {}

    public static byte[] hash128(byte[] data) {
        XxHash3 hash = new XxHash3();
        if (data.length <= 16) {
            hash.upTo16(data);
        } else if (data.length <= 240) {
            hash.upTo240(data);
        } else {
            hash.longer(data);
        }
        byte[] digest = new byte[16];
        for (int i = 0; i < 8; i++) {
            digest[i] = (byte) (hash.high >>> (56 - 8 * i));
            digest[8 + i] = (byte) (hash.low >>> (56 - 8 * i));
        }
        return digest;
    }

    private void upTo16(byte[] data) {
        int length = data.length;
        if (length > 8) {
            from9(data);
        } else if (length > 3) {
            from4(data);
        } else if (length > 0) {
            int mixed = (data[0] & 0xFF) << 16 | (data[length >> 1] & 0xFF) << 24 | (data[length - 1] & 0xFF) | length << 8;
            low = avalanche64((mixed & 0xFFFFFFFFL) ^ (key32(0) ^ key32(4)));
            high = avalanche64((Integer.rotateLeft(Integer.reverseBytes(mixed), 13) & 0xFFFFFFFFL) ^ (key32(8) ^ key32(12)));
        } else {
            low = avalanche64(key(64) ^ key(72));
            high = avalanche64(key(80) ^ key(88));
        }
    }

    private void from4(byte[] data) {
        int length = data.length;
        long both = (Bytes.intAt(data, 0) & 0xFFFFFFFFL) + ((long) Bytes.intAt(data, length - 4) << 32);
        multiply(both ^ (key(16) ^ key(24)), P64_1 + ((long) length << 2));
        high += low << 1;
        low ^= high >>> 3;
        low = (low ^ low >>> 35) * MIX_2;
        low ^= low >>> 28;
        high = avalanche(high);
    }

    private void from9(byte[] data) {
        int length = data.length;
        long last = Bytes.longAt(data, length - 8);
        multiply(Bytes.longAt(data, 0) ^ last ^ (key(32) ^ key(40)), P64_1);
        low += (long) (length - 1) << 54;
        last ^= key(48) ^ key(56);
        high += last + (last & 0xFFFFFFFFL) * (P32_2 - 1);
        low ^= Long.reverseBytes(high);
        long upper = high * P64_2;
        multiply(low, P64_2);
        high += upper;
        low = avalanche(low);
        high = avalanche(high);
    }

    private void upTo240(byte[] data) {
        int length = data.length;
        low = length * P64_1;
        if (length <= 128) {
            for (int i = (length - 1) / 32; i >= 0; i--) {
                mix(data, 16 * i, length - 16 * (i + 1), 32 * i);
            }
        } else {
            for (int i = 32; i < 160; i += 32) {
                mix(data, i - 32, i - 16, i - 32);
            }
            low = avalanche(low);
            high = avalanche(high);
            for (int i = 160; i <= length; i += 32) {
                mix(data, i - 32, i - 16, 3 + i - 160);
            }
            mix(data, length - 16, length - 32, 136 - 17 - 16);
        }
        long sum = low + high;
        high = -avalanche(low * P64_1 + high * P64_4 + length * P64_2);
        low = avalanche(sum);
    }

    private void mix(byte[] data, int first, int second, int key) {
        low += folded(data, first, key);
        low ^= Bytes.longAt(data, second) + Bytes.longAt(data, second + 8);
        high += folded(data, second, key + 16);
        high ^= Bytes.longAt(data, first) + Bytes.longAt(data, first + 8);
    }

    private void longer(byte[] data) {
        int length = data.length;
        long[] sums = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
        int blocks = (length - 1) / (STRIPE * STRIPES);
        for (int stripe = 0; stripe < (length - 1) / STRIPE; stripe++) {
            accumulate(sums, data, stripe * STRIPE, stripe % STRIPES * 8);
            if (stripe % STRIPES == STRIPES - 1 && stripe / STRIPES < blocks) {
                for (int i = 0; i < 8; i++) {
                    sums[i] = (sums[i] ^ sums[i] >>> 47 ^ key(128 + 8 * i)) * P32_1;
                }
            }
        }
        accumulate(sums, data, length - STRIPE, 128 - 7);
        low = merged(sums, 11, length * P64_1);
        high = merged(sums, 128 - 11, ~(length * P64_2));
    }

    private static void accumulate(long[] sums, byte[] data, int at, int key) {
        for (int i = 0; i < 8; i++) {
            long value = Bytes.longAt(data, at + 8 * i);
            long keyed = value ^ key(key + 8 * i);
            sums[i ^ 1] += value;
            sums[i] += (keyed & 0xFFFFFFFFL) * (keyed >>> 32);
        }
    }

    private static long merged(long[] sums, int key, long start) {
        long result = start;
        for (int i = 0; i < 4; i++) {
            result += folded(sums[2 * i] ^ key(key + 16 * i), sums[2 * i + 1] ^ key(key + 16 * i + 8));
        }
        return avalanche(result);
    }

    private static long folded(byte[] data, int at, int key) {
        return folded(Bytes.longAt(data, at) ^ key(key), Bytes.longAt(data, at + 8) ^ key(key + 8));
    }

    private static long folded(long a, long b) {
        return a * b ^ upper(a, b);
    }

    private void multiply(long a, long b) {
        high = upper(a, b);
        low = a * b;
    }

    /** The upper half of the product of two unsigned numbers. */
    private static long upper(long a, long b) {
        return Math.multiplyHigh(a, b) + (a >> 63 & b) + (b >> 63 & a);
    }

    private static long avalanche(long hash) {
        long mixed = (hash ^ hash >>> 37) * MIX_1;
        return mixed ^ mixed >>> 32;
    }

    private static long avalanche64(long hash) {
        long mixed = (hash ^ hash >>> 33) * P64_2;
        mixed = (mixed ^ mixed >>> 29) * P64_3;
        return mixed ^ mixed >>> 32;
    }

    private static long key(int at) {
        return Bytes.longAt(SECRET, at);
    }

    private static long key32(int at) {
        return Bytes.intAt(SECRET, at) & 0xFFFFFFFFL;
    }

    private static byte[] secret(String digits) {
        byte[] bytes = new byte[digits.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }
}
