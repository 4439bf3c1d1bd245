// SPDX-License-Identifier: GPL-2.0-or-later
import iosd.Function;
import iosd.Osd;
import java.nio.ByteBuffer;
import java.security.MessageDigest;

/**
 * Stores the SHA-256 of the zone as an attribute, and returns it. Arguments: page and number, 4 bytes each.
 * Access: write.
 */
public final class Digest implements Function {
    private static final int PIECE = 1 << 20;

    @Override
    public byte[] call(byte[] arguments) throws Exception {
        ByteBuffer name = ByteBuffer.wrap(arguments);
        int page = name.getInt();
        int number = name.getInt();
        long partition = Osd.zonePartition();
        long object = Osd.zoneObject();
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        long length = Osd.length(partition, object);

        for (long at = 0; at < length; at += PIECE) {
            digest.update(Osd.read(partition, object, at, PIECE));
            Osd.progress((int) (at * 1000 / length), "digest");
        }
        byte[] sum = digest.digest();

        Osd.setattr(partition, object, page, number, sum);
        return sum;
    }
}
