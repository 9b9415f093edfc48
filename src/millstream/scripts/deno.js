// The main module of the Deno child. Frames on standard input: a byte, a length, and UTF-8 text. `s` starts the script, `c` calls it, `t`
// calls it and tells the row before each one. Frames on standard output: `r` an answer, `p` a row, `e` a script that cannot be started;
// the first one says that the child is there.
// The loop reads synchronously and never returns to Deno's event loop, so no promise of a script ever goes on.
const { stdin, stdout } = Deno;
const encoder = new TextEncoder(), decoder = new TextDecoder();
const encode = encoder.encode.bind(encoder), decode = decoder.decode.bind(decoder);
const readSync = stdin.readSync.bind(stdin), writeSync = stdout.writeSync.bind(stdout);
const Bytes = Uint8Array, View = DataView, { parse } = JSON;

function read(size) {
  const data = new Bytes(size);
  for (let at = 0; at < size;) {
    const got = readSync(data.subarray(at));
    if (got === null) return null;
    at += got;
  }
  return data;
}

function write(kind, data) {
  const head = new Bytes(5);
  head[0] = kind;
  new View(head.buffer).setUint32(1, data.length, true);
  for (const part of [head, data]) for (let at = 0; at < part.length;) at += writeSync(part.subarray(at));
}

const place = new Bytes(4), placed = new View(place.buffer);
let traced = false, run = null;
const hooks = { mark(row) { if (traced) { placed.setUint32(0, row, true); write(112, place); } } };

write(114, encode(""));  // ready: what the process holds now is its own
for (;;) {
  const head = read(5);
  if (head === null) break;
  const text = decode(read(new View(head.buffer).getUint32(1, true)));
  if (head[0] === 115) {
    try {
      run = start(parse(text), hooks);
      write(114, encode(""));
    } catch (error) {
      write(101, encode(`${error.message}\n${error.stack}`));
    }
  } else {
    traced = head[0] === 116;
    try {
      write(114, encode(run(text)));
    } catch (error) {
      write(101, encode(`${error.message}\n${error.stack}`));
    }
  }
}
