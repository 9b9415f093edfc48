package millstream;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's raw local file system, which starts a `chmod` process for every file and folder that it makes. This one asks the system. */
public class RawLocalFiles extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
        try {
            Files.setAttribute(pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()));
        } catch (UnsupportedOperationException notUnix) {
            super.setPermission(path, permission);
        }
    }
}
