package millstream;

/** Numbers in arrays of bytes, the least significant byte first. */
final class Bytes {
    private Bytes() {}

    static long longAt(byte[] data, int at) {
        long found = 0;
        for (int i = 7; i >= 0; i--) {
            found = found << 8 | data[at + i] & 0xFFL;
        }
        return found;
    }

    static int intAt(byte[] data, int at) {
        return (data[at] & 0xFF) | (data[at + 1] & 0xFF) << 8 | (data[at + 2] & 0xFF) << 16 | data[at + 3] << 24;
    }
}
