// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

/** The code is no JAR with the function that was called. */
final class BadCode extends Exception {
    private static final long serialVersionUID = 1;

    /** A number of enum osd_finish_kind. */
    final int kind;

    BadCode(int kind, String message) {
        super(message);
        this.kind = kind;
    }
}
