// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

/**
 * A function. The entry point `main` is the class that the manifest of the JAR names as Main-Class; any
 * other entry point is the class of that name. The class is public and has a public constructor without
 * parameters. Each call has a virtual machine of its own.
 */
public interface Function {
    /**
     * Runs one call, on the thread `main`.
     *
     * @param arguments the arguments as they were sent; empty if there are none
     * @return the result, or its end if Osd.result was called; null adds nothing
     * @throws Exception the call has failed: its report has the stack trace
     */
    byte[] call(byte[] arguments) throws Exception;
}
