// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Objects;

/** The output of a call, or its errors. A write that waits for the reader ends when the call has to end. */
final class Output extends OutputStream {
    private final int stream;

    Output(int stream) {
        this.stream = stream;
    }

    @Override
    public void write(int one) throws IOException {
        write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int at, int length) throws IOException {
        Objects.checkFromIndexSize(at, length, bytes.length);
        if (!log(stream, bytes, at, length)) {
            throw new IOException("the stream is closed");
        }
    }

    private static native boolean log(int stream, byte[] bytes, int at, int length);
}
