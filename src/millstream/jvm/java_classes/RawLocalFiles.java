package millstream;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's raw local file system, which starts a `chmod` process for every file and folder that it makes. This one asks the system. */
public class RawLocalFiles extends RawLocalFileSystem {
    private static final int GROUP_AND_USER_ID = 06000;

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
        java.nio.file.Path file = pathToFile(path).toPath();
        try {
            int kept = 0; // as `chmod` does: a folder keeps these bits
            if (Files.isDirectory(file, new java.nio.file.LinkOption[0])) {
                Integer before = (Integer) Files.getAttribute(file, "unix:mode", new java.nio.file.LinkOption[0]);
                kept = before.intValue() & GROUP_AND_USER_ID;
            }
            Files.setAttribute(file, "unix:mode", Integer.valueOf(permission.toShort() | kept), new java.nio.file.LinkOption[0]);
        } catch (UnsupportedOperationException notUnix) {
            super.setPermission(path, permission);
        }
    }
}
