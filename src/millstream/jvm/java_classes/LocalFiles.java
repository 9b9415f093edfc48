package millstream;

import org.apache.hadoop.fs.LocalFileSystem;

/** Hadoop's local file system with checksums, on top of `RawLocalFiles`. */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFiles());
    }
}
