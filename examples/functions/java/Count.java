// SPDX-License-Identifier: GPL-2.0-or-later
import iosd.Function;
import iosd.Osd;

/** Counts the lines of the zone. Access: read. */
public final class Count implements Function {
    private static final int PIECE = 1 << 20;

    @Override
    public byte[] call(byte[] arguments) {
        byte[] piece = new byte[PIECE];
        long lines = 0;
        long at = 0;
        int count;

        do {
            count = Osd.read(Osd.zonePartition(), Osd.zoneObject(), at, piece, 0, PIECE);
            for (int i = 0; i < count; i++) {
                lines += piece[i] == '\n' ? 1 : 0;
            }
            at += count;
        } while (count == PIECE);
        Osd.json(Long.toString(lines));
        return null;
    }
}
