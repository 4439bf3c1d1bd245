// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * What a call can do outside its own memory. Objects are named by the ids of partition and object. Any
 * thread may call these methods; the calls are served one at a time.
 *
 * <p>Each method throws OsdException if the call is refused or fails, IndexOutOfBoundsException for a range
 * outside its array, NullPointerException for a missing one, and ThreadDeath if the call has to end.
 */
public final class Osd {
    private Osd() {
    }

    /** Reads up to `length` bytes from `offset` on into to[at], to[at + 1] and so on. Returns the number of
     * bytes; fewer at the end of the object. */
    public static native int read(long partition, long object, long offset, byte[] to, int at, int length);

    /** Returns up to `length` bytes from `offset` on; fewer at the end of the object. */
    public static byte[] read(long partition, long object, long offset, int length) {
        byte[] bytes = new byte[length];
        int count = read(partition, object, offset, bytes, 0, length);

        return count == length ? bytes : Arrays.copyOf(bytes, count);
    }

    /** Writes `length` bytes from[at], from[at + 1] and so on. If it fails, a part may be written. */
    public static native void write(long partition, long object, long offset, byte[] from, int at, int length);

    /** Writes all bytes of the array. */
    public static void write(long partition, long object, long offset, byte[] from) {
        write(partition, object, offset, from, 0, from.length);
    }

    /** Returns the bytes of the object. */
    public static native long length(long partition, long object);

    /** Returns the value of an attribute; no bytes: it is undefined. */
    public static native byte[] getattr(long partition, long object, int page, int number);

    /** Sets an attribute, of at most 65534 bytes; no bytes make it undefined. */
    public static native void setattr(long partition, long object, int page, int number, byte[] value);

    /** Returns the arguments, as Function.call gets them. */
    public static native byte[] args();

    /** Returns the partition of the zone. */
    public static long zonePartition() {
        return zone(0);
    }

    /** Returns the object of the zone; 0: the zone is a partition. */
    public static long zoneObject() {
        return zone(1);
    }

    /** Returns the type of the zone: 1 root, 2 partition, 40h collection, 80h user object. */
    public static int zoneType() {
        return (int) zone(2);
    }

    /** Adds bytes to the result of the call. */
    public static void result(byte[] bytes) {
        result(0, bytes);
    }

    /** Adds text to the result, which is JSON. */
    public static void json(String text) {
        result(1, text.getBytes(StandardCharsets.UTF_8));
    }

    /** Adds a line to the output of the call, as System.out.println does. */
    public static void log(String line) {
        System.out.println(line);
    }

    /** Shows how far the call is: 0 to 1000 thousandths, or -1, and a text of at most 256 bytes. */
    public static void progress(int thousandths, String text) {
        progress(thousandths, text.getBytes(StandardCharsets.UTF_8));
    }

    private static native long zone(int which);

    private static native void result(int encoding, byte[] bytes);

    private static native void progress(int thousandths, byte[] text);
}
