// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;

/** The Java half of the engine: called by java_engine.c, on the thread `main` except for end(). */
final class Host {
    /* enum osd_finish_kind */
    static final int OK = 0;
    static final int EXCEPTION = 1;
    static final int MEMORY = 3;
    static final int ENDED = 4;
    static final int BAD_CODE = 5;
    static final int CODE_LIMIT = 6;
    static final int THREADS = 7;

    private static final int LINE_MAX = 160; // characters
    private static final int REPORT_MAX = 60 << 10;

    private static Thread main;

    private Host() {
    }

    /** Before the filter: loads what calls need, and what the filter would not let files in Java make. */
    static void prepare() throws Exception {
        main = Thread.currentThread();
        System.setOut(new PrintStream(new Output(1), true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(new Output(2), true, StandardCharsets.UTF_8));
        Class.forName("sun.nio.ch.FileDispatcherImpl"); // makes a pair of sockets
        try {
            new Jar(new byte[0]);
        } catch (BadCode e) {
            text(e);
        }
    }

    static void run(byte[] code, byte[] method, byte[] arguments) {
        try {
            Jar jar = new Jar(code);

            main.setContextClassLoader(jar);
            Function function = make(jar.entry(new String(method, StandardCharsets.UTF_8)));
            byte[] result = function.call(arguments);

            if (result != null) {
                Osd.result(result);
            }
            finish(OK, null, null);
        } catch (BadCode e) {
            byte[] line = line(e.getMessage());

            finish(e.kind, line, line);
        } catch (Throwable e) {
            fail(e);
        }
    }

    private static Function make(Class<? extends Function> entry) throws Throwable {
        try {
            return entry.getConstructor().newInstance();
        } catch (NoSuchMethodException | IllegalAccessException | InstantiationException e) {
            throw new BadCode(BAD_CODE, entry.getName()
                    + " is no public class with a public constructor without parameters");
        } catch (VerifyError e) {
            throw new BadCode(BAD_CODE, entry.getName() + ": " + e);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    /** The methods of an exception are the function's code, too, and may fail. */
    private static void fail(Throwable thrown) {
        byte[] line = null;
        byte[] report = null;

        try {
            line = line(thrown.toString());
            report = cut(text(thrown), REPORT_MAX);
        } catch (Throwable e) {
            // what is missing is not reported
        }
        finish(kind(thrown), line, report);
    }

    private static int kind(Throwable thrown) {
        if (ended()) {
            return ENDED;
        }
        if (thrown.getClass() != OutOfMemoryError.class) {
            return EXCEPTION;
        }
        String message = thrown.getMessage();

        return message != null && message.startsWith("unable to create native thread") ? THREADS : MEMORY;
    }

    private static String text(Throwable thrown) {
        StringWriter text = new StringWriter();

        thrown.printStackTrace(new PrintWriter(text, true));
        return text.toString();
    }

    private static byte[] line(String text) {
        int end = text.indexOf('\n');

        return cut(end < 0 ? text : text.substring(0, end), LINE_MAX);
    }

    private static byte[] cut(String text, int most) {
        return text.substring(0, Math.min(text.length(), most)).getBytes(StandardCharsets.UTF_8);
    }

    /** The call has to end: raises ThreadDeath in it, wherever it is. Called on a thread of its own. */
    @SuppressWarnings({"deprecation", "removal"})
    static void end() {
        main.stop();
    }

    private static native boolean ended();

    /** Reports the end of the call; only the first report counts. */
    private static native void finish(int kind, byte[] line, byte[] report);
}
