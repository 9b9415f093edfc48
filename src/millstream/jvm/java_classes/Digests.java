package millstream;

/** Hash functions that Spark does not have, called by generated code. */
public final class Digests {
    private static final int RATE = 136;
    private static final long[] ROUNDS = {
        0x0000000000000001L, 0x0000000000008082L, 0x800000000000808AL, 0x8000000080008000L, 0x000000000000808BL, 0x0000000080000001L,
        0x8000000080008081L, 0x8000000000008009L, 0x000000000000008AL, 0x0000000000000088L, 0x0000000080008009L, 0x000000008000000AL,
        0x000000008000808BL, 0x800000000000008BL, 0x8000000000008089L, 0x8000000000008003L, 0x8000000000008002L, 0x8000000000000080L,
        0x000000000000800AL, 0x800000008000000AL, 0x8000000080008081L, 0x8000000000008080L, 0x0000000080000001L, 0x8000000080008008L
    };
    private static final int[] ROTATIONS = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
    private static final int[] LANES = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};

    private Digests() {}

    /** Keccak-256 as Ethereum uses it: with the padding of the original Keccak, not of SHA-3. */
    public static byte[] keccak256(byte[] data) {
        long[] state = new long[25];
        int start = 0;
        for (; start + RATE <= data.length; start += RATE) {
            absorb(state, data, start);
        }
        byte[] last = new byte[RATE];
        System.arraycopy(data, start, last, 0, data.length - start);
        last[data.length - start] ^= (byte) 0x01;
        last[RATE - 1] ^= (byte) 0x80;
        absorb(state, last, 0);
        byte[] digest = new byte[32];
        for (int i = 0; i < digest.length; i++) {
            digest[i] = (byte) (state[i / 8] >>> (8 * (i % 8)));
        }
        return digest;
    }

    private static void absorb(long[] state, byte[] data, int start) {
        for (int i = 0; i < RATE / 8; i++) {
            state[i] ^= Bytes.longAt(data, start + 8 * i);
        }
        long[] columns = new long[5];
        for (int round = 0; round < ROUNDS.length; round++) {
            permute(state, columns);
            state[0] ^= ROUNDS[round];
        }
    }

    /** One round of Keccak-f[1600] without its constant. */
    private static void permute(long[] state, long[] columns) {
        for (int x = 0; x < 5; x++) {
            columns[x] = state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20];
        }
        for (int x = 0; x < 5; x++) {
            long mixed = columns[(x + 4) % 5] ^ Long.rotateLeft(columns[(x + 1) % 5], 1);
            for (int y = 0; y < 25; y += 5) {
                state[x + y] ^= mixed;
            }
        }
        long moved = state[1];
        for (int i = 0; i < LANES.length; i++) {
            long kept = state[LANES[i]];
            state[LANES[i]] = Long.rotateLeft(moved, ROTATIONS[i]);
            moved = kept;
        }
        for (int y = 0; y < 25; y += 5) {
            System.arraycopy(state, y, columns, 0, 5);
            for (int x = 0; x < 5; x++) {
                state[x + y] = columns[x] ^ (~columns[(x + 1) % 5] & columns[(x + 2) % 5]);
            }
        }
    }
}
