// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

import java.nio.charset.StandardCharsets;

/** A call of the class Osd was refused or has failed. */
public final class OsdException extends RuntimeException {
    public static final int NOT_FOUND = 1;
    public static final int EXISTS = 2;
    /** Outside the zone, or more than the access class allows. */
    public static final int PERMISSION = 3;
    public static final int NO_SPACE = 4;
    /** A bad parameter, or an unknown or read-only attribute. */
    public static final int INVALID = 5;
    public static final int STORAGE = 6;
    public static final int NOT_EMPTY = 7;
    /** An unfinished job stands in the way. */
    public static final int CONFLICT = 8;
    /** A function that the data pass through has failed. */
    public static final int STAGE = 9;

    private static final long serialVersionUID = 1;

    /** One of the constants. */
    public final int code;

    OsdException(int code, byte[] message) {
        super(new String(message, StandardCharsets.UTF_8));
        this.code = code;
    }
}
