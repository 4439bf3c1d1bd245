// SPDX-License-Identifier: GPL-2.0-or-later
import iosd.Function;
import iosd.Osd;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Figure 2 of Oasis: of the lines of the zone, each a number, returns those below 100, or below the number in
 * the arguments. Empty lines are left out. Access: read.
 */
public final class Filter implements Function {
    private static final long LIMIT = 100;

    @Override
    public byte[] call(byte[] arguments) {
        long partition = Osd.zonePartition();
        long object = Osd.zoneObject();
        int size = Math.toIntExact(Osd.length(partition, object));
        byte[] text = Osd.read(partition, object, 0, size);
        long limit = arguments.length == 0 ? LIMIT : number(arguments, 0, arguments.length);
        ByteArrayOutputStream kept = new ByteArrayOutputStream();
        int begin = 0;

        for (int i = 0; i < text.length; i++) {
            if (text[i] != '\n' && i + 1 < text.length) {
                continue;
            }
            int end = text[i] == '\n' ? i : i + 1;

            if (end > begin && number(text, begin, end) < limit) {
                kept.write(text, begin, i + 1 - begin);
            }
            begin = i + 1;
        }
        return kept.toByteArray();
    }

    private static long number(byte[] text, int begin, int end) {
        return Long.parseLong(new String(text, begin, end - begin, StandardCharsets.US_ASCII).strip());
    }
}
