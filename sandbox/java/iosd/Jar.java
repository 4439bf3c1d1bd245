// SPDX-License-Identifier: GPL-2.0-or-later
package iosd;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/** The classes and resources of a JAR in memory. The platform's classes and those of iosd come first. */
final class Jar extends ClassLoader {
    /** Bytes of all entries together, as for code of every engine. */
    private static final int MOST = 16 << 20;
    private static final String MAIN = "main";

    private final Map<String, byte[]> entries = new HashMap<>();

    Jar(byte[] code) throws BadCode {
        super(getPlatformClassLoader());
        try (ZipInputStream zip = new ZipInputStream(new ByteArrayInputStream(code))) {
            int left = MOST;
            ZipEntry entry;

            while ((entry = zip.getNextEntry()) != null) {
                byte[] bytes = zip.readNBytes(left + 1);

                if (bytes.length > left) {
                    throw new BadCode(Host.CODE_LIMIT, "the JAR expands to more than 16 MiB");
                }
                left -= bytes.length;
                add(entry.getName(), bytes);
            }
        } catch (IOException | IllegalArgumentException e) {
            throw new BadCode(Host.BAD_CODE, "the JAR cannot be read: " + e.getMessage());
        }
        if (entries.isEmpty()) {
            throw new BadCode(Host.BAD_CODE, "the code is no JAR");
        }
    }

    private void add(String name, byte[] bytes) throws BadCode {
        if (name.startsWith("iosd/") && name.endsWith(".class")) {
            throw new BadCode(Host.BAD_CODE, "the JAR has a class of the package iosd: " + name);
        }
        if (entries.putIfAbsent(name, bytes) != null) {
            throw new BadCode(Host.BAD_CODE, "the JAR has two entries of the name " + name);
        }
    }

    /** Returns the class of an entry point, which is a Function. */
    Class<? extends Function> entry(String method) throws BadCode {
        String name = method.equals(MAIN) ? mainClass() : method;

        try {
            Class<?> found = loadClass(name);

            if (found.getClassLoader() == this && Function.class.isAssignableFrom(found)) {
                return found.asSubclass(Function.class);
            }
        } catch (ClassNotFoundException e) {
            throw new BadCode(Host.BAD_CODE, "the JAR has no class " + name);
        } catch (LinkageError | SecurityException e) {
            throw new BadCode(Host.BAD_CODE, name + ": " + e);
        }
        throw new BadCode(Host.BAD_CODE, name + " does not implement iosd.Function");
    }

    private String mainClass() throws BadCode {
        byte[] bytes = entries.get(JarFile.MANIFEST_NAME);
        String name = null;

        try {
            if (bytes != null) {
                Manifest manifest = new Manifest(new ByteArrayInputStream(bytes));

                name = manifest.getMainAttributes().getValue(Attributes.Name.MAIN_CLASS);
            }
        } catch (IOException | IllegalArgumentException e) {
            throw new BadCode(Host.BAD_CODE, "the manifest of the JAR cannot be read: " + e.getMessage());
        }
        if (name == null) {
            throw new BadCode(Host.BAD_CODE, "the manifest of the JAR names no Main-Class");
        }
        return name.strip();
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] bytes = entries.get(name.replace('.', '/') + ".class");

        if (bytes == null) {
            throw new ClassNotFoundException(name);
        }
        return defineClass(name, bytes, 0, bytes.length);
    }

    @Override
    public InputStream getResourceAsStream(String name) {
        byte[] bytes = entries.get(name);

        return bytes == null ? super.getResourceAsStream(name) : new ByteArrayInputStream(bytes);
    }
}
