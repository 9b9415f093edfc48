// What runs around a user's script, the same on every engine. It evaluates to `start(options, hooks)`, which returns `run(request)`.
//
// Columns come in as JSON and go out as JSON; rows exist only here. Before the script is evaluated, everything that could make a result
// vary or lead out of the sandbox is removed, and every intrinsic object is frozen: a script cannot change what this code or another row
// relies on. A row whose function throws is reported with its number; the other rows go on.
(function () {
"use strict";

const KEPT_GLOBALS = new Set(("Object Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError Array " +
  "Boolean Number String Symbol BigInt Math JSON Date RegExp Map Set WeakMap WeakSet Reflect Proxy ArrayBuffer DataView " +
  "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array Float32Array Float64Array BigInt64Array " +
  "BigUint64Array Iterator isNaN isFinite parseInt parseFloat NaN Infinity undefined globalThis encodeURI decodeURI " +
  "encodeURIComponent decodeURIComponent console").split(" "));
const KEPT_OF_REGEXP = new Set(["length", "name", "prototype", "escape"]);
const LOG_LINES = 50, LOG_WIDTH = 1000, ERROR_WIDTH = 2000, NOWHERE = 0xffffffff;
const evaluate = (0, eval);
const { parse, stringify } = JSON;
const NativeDate = Date, now = Date.now, random = Math.random;
const AsyncFunction = (async function () {}).constructor;
const GeneratorFunction = (function* () {}).constructor;
const AsyncGeneratorFunction = (async function* () {}).constructor;
const RealFunction = Function, { construct } = Reflect;

class ResultError extends Error {}
const fail = (text) => { throw new ResultError(text); };
const WIDE = { wide: true };

function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) && Number.isSafeInteger(value) ? `the number ${value}` : `${value}`;
  if (typeof value === "undefined") return "undefined";
  if (typeof value === "string") return `the string ${shorten(stringify(value), 60)}`;
  if (typeof value === "bigint") return `${value}n`;
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function shorten(text, width) {
  return text.length > width ? text.slice(0, width) + "…" : text;
}

// ---- values of columns, and their form in JSON: `wide` columns have text for each number that JSON or a double cannot hold

const isNull = (value) => value === null || value === undefined;
const orNull = (convert) => (convert === null ? null : (value) => (isNull(value) ? null : convert(value)));
const toNumber = (text) => (text === "nan" ? NaN : text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));

// JSON → value; null: as it is
function reader(type, wide) {
  switch (type.k) {
    case "long": return (value) => BigInt(value);
    case "float": return wide ? toNumber : null;
    case "bytes": return (value) => Uint8Array.fromHex(value);
    case "list": {
      const item = orNull(reader(type.of, wide));
      return item === null ? null : (value) => value.map(item);
    }
    case "map": {
      const key = orNull(reader(type.key, wide)) || ((v) => v), item = orNull(reader(type.of, wide)) || ((v) => v);
      return (value) => new Map(value.map((entry) => [key(entry.key), item(entry.value)]));
    }
    case "struct": {
      const parts = type.fields.map((field) => [field.n, orNull(reader(field.t, wide)) || ((v) => v)]);
      return (value) => Object.fromEntries(parts.map(([name, convert]) => [name, convert(value[name])]));
    }
    default: return null;
  }
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const TIME = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d:?\d\d)?$/;
const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const expected = (what, value) => fail(`expected ${what}, got ${kindOf(value)}`);

// value → JSON; throws WIDE when a narrow column cannot hold it
function writer(type, wide) {
  switch (type.k) {
    case "bool": return (value) => (typeof value === "boolean" ? value : expected("a boolean", value));
    case "string": return (value) => (typeof value === "string" && value.isWellFormed() ? value : expected("a string of Unicode text", value));
    case "int": {
      const low = -(2 ** (type.bits - 1)), high = 2 ** (type.bits - 1) - 1;
      return (value) => {
        const number = typeof value === "bigint" ? Number(value) : value;
        return Number.isInteger(number) && number >= low && number <= high ? number + 0 : expected(`an int${type.bits}`, value);
      };
    }
    case "long": return (value) => {
      if (typeof value === "number") {
        if (!Number.isSafeInteger(value)) expected("an int64 (a bigint, or a whole number below 2^53)", value);
        return wide ? String(value) : value + 0;
      }
      if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) expected("an int64", value);
      if (wide) return String(value);
      const number = Number(value);
      if (!Number.isSafeInteger(number)) throw WIDE;
      return number;
    };
    case "float": return (value) => {
      if (typeof value !== "number") expected("a number", value);
      if (type.single && Number.isFinite(value) && !Number.isFinite(Math.fround(value))) expected("a float32", value);
      if (wide) return Object.is(value, -0) ? "-0" : String(value);
      // JSON would print a large float without a point, as an integer
      if (!(Math.abs(value) < 2 ** 53) || Object.is(value, -0)) throw WIDE;
      return value;
    };
    case "decimal": return (value) => {
      const text = typeof value === "string" ? value : typeof value === "bigint" || typeof value === "number" ? String(value) : "";
      return DECIMAL.test(text) ? text : expected(`a decimal(${type.p},${type.s}), as text`, value);
    };
    case "date": return (value) => {
      const text = value instanceof NativeDate ? value.toISOString().slice(0, 10) : value;
      return typeof text === "string" && DATE.test(text) ? text : expected("a date as YYYY-MM-DD", value);
    };
    case "time": return (value) => {
      const text = value instanceof NativeDate ? (type.zone ? value.toISOString() : value.toISOString().slice(0, -1)) : value;
      const found = typeof text === "string" ? TIME.exec(text) : null;
      if (!found || Boolean(found[3]) !== type.zone) {
        expected(type.zone ? "a timestamp in ISO format with Z or an offset" : "a timestamp in ISO format without Z", value);
      }
      return `${found[1]}T${found[2]}${found[3] || ""}`;
    };
    case "bytes": return (value) => (value instanceof Uint8Array ? value.toHex() : expected("a Uint8Array", value));
    case "list": {
      const item = orNull(writer(type.of, wide));
      return (value) => (Array.isArray(value) ? Array.from(value, item) : expected("an array", value));
    }
    case "map": {
      const key = writer(type.key, wide), item = orNull(writer(type.of, wide));
      return (value) => {
        const pairs = value instanceof Map ? [...value] : plainEntries(value, type);
        return pairs.map(([name, content]) => ({ key: isNull(name) ? fail("a key of a map is null") : key(name), value: item(content) }));
      };
    }
    case "struct": {
      const parts = type.fields.map((field) => [field.n, orNull(writer(field.t, wide))]);
      const known = new Set(type.fields.map((field) => field.n));
      return (value) => {
        if (typeof value !== "object" || Array.isArray(value)) expected("an object", value);
        for (const name of Object.keys(value)) if (!known.has(name)) fail(`\`${name}\` is not a field of the struct`);
        return Object.fromEntries(parts.map(([name, convert]) => [name, convert(own(value, name))]));
      };
    }
    default: return (value) => expected("null", value);
  }
}

function plainEntries(value, type) {
  if (typeof value !== "object" || Array.isArray(value) || type.key.k !== "string") expected("a Map", value);
  return Object.entries(value);
}

// A field that every object inherits, such as `constructor`, counts only when the row has it itself
const own = (value, name) => (name in Object.prototype && !Object.hasOwn(value, name) ? undefined : value[name]);

// The text of a function that writes the fields of one row: unrolled, with the common case of each type in place. `place.field` says which
// field it is at, so that no field needs a `try` of its own.
function putterCode(types, names) {
  const fast = {
    bool: "v === true || v === false ? v",
    string: "typeof v === 'string' && v.isWellFormed() ? v",
    float: "!isWide[AT] && typeof v === 'number' && v > -9007199254740992 && v < 9007199254740992 && v !== 0 ? v",
    long: "!isWide[AT] && typeof v === 'bigint' && v < 9007199254740992n && v > -9007199254740992n ? Number(v)",
  };
  const lines = types.map((type, at) => {
    const name = stringify(names[at]), read = names[at] in Object.prototype ? `own(row, ${name})` : `row[${name}]`;
    const usual = type.k === "int" && type.bits === 32 ? "typeof v === 'number' && (v | 0) === v ? v" : type.k === "float" && type.single ? null : fast[type.k];
    const written = usual ? `${usual.replace("AT", at)} : writers[${at}](v)` : `writers[${at}](v)`;
    return `place.field = ${at}; v = ${read};\nif (v === undefined) results[${at}].push(null);
      else { present++; results[${at}].push(v === null ? null : ${written}); }`;
  });
  return `((own) => function __putFields(row, place, results, writers, isWide) { "use strict"; let v, present = 0;\n${lines.join("\n")}
    place.field = ${types.length}; return present; })`;
}

// a narrow JSON value as a wide one
function widener(type) {
  switch (type.k) {
    case "long": case "float": return String;
    case "list": { const item = orNull(widener(type.of)); return (value) => value.map(item); }
    case "map": {
      const key = widener(type.key), item = orNull(widener(type.of));
      return (value) => value.map((entry) => ({ key: key(entry.key), value: item(entry.value) }));
    }
    case "struct": {
      const parts = type.fields.map((field) => [field.n, orNull(widener(field.t))]);
      return (value) => Object.fromEntries(parts.map(([name, convert]) => [name, convert(value[name])]));
    }
    default: return (value) => value;
  }
}

// ---- the sandbox

function lock(options, log) {
  const proto = (f) => f.prototype;
  for (const made of [RealFunction, AsyncFunction, GeneratorFunction, AsyncGeneratorFunction]) {
    Object.defineProperty(proto(made), "constructor", { value: blocked("Function"), writable: false, configurable: false });
  }
  if (!options.clock) {
    // no class that extends Date: its prototype would be the real one, with the clock
    const SafeDate = function Date(...given) {
      if (new.target === undefined || given.length === 0) {
        throw new TypeError("there is no clock: new Date() needs an argument, or the node `allow: [clock]`");
      }
      return construct(NativeDate, given, new.target);
    };
    for (const name of ["prototype", "length", "UTC", "parse"]) Object.defineProperty(SafeDate, name, { value: NativeDate[name] });
    Object.defineProperty(SafeDate, "now", { value: () => { throw new TypeError("there is no clock: `allow: [clock]` gives one"); } });
    Object.defineProperty(NativeDate.prototype, "constructor", { value: SafeDate });
    define("Date", SafeDate);
  }
  delete Math.random;
  // the last match, and what changes a frozen expression
  for (const name of Reflect.ownKeys(RegExp)) if (typeof name === "string" && !KEPT_OF_REGEXP.has(name)) delete RegExp[name];
  delete RegExp.prototype.compile;
  const say = (level) => (...values) => {
    if (log.length < LOG_LINES) log.push([level, shorten(values.map(asText).join(" "), LOG_WIDTH)]);
    else log.dropped = (log.dropped || 0) + 1;
  };
  define("console", { log: say("info"), info: say("info"), debug: say("info"), warn: say("warning"), error: say("error") });
  for (const name of Reflect.ownKeys(globalThis)) {
    if (typeof name === "string" && KEPT_GLOBALS.has(name)) continue;
    Reflect.deleteProperty(globalThis, name);
    if (name in globalThis) Reflect.defineProperty(globalThis, name, { value: undefined, writable: false, configurable: false });
  }
  // `this.name = …` in an error class and `row.constructor = …` must work although the prototypes are frozen
  for (const each of [Object, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError]) {
    for (const name of ["name", "message", "toString", "valueOf", "constructor"]) allowOverride(each.prototype, name);
  }
  freezeAll([globalThis, proto(AsyncFunction), proto(GeneratorFunction), proto(AsyncGeneratorFunction), (function* () {})(),
    (async function* () {})(), (async function () {})(), [].values(), new Map().entries(), new Set().values(), "".matchAll(/a/g), ""[Symbol.iterator]()]);
}

const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
const blocked = (name) => function () { throw new TypeError(`${name} is not available: code is not made from text`); };

function allowOverride(object, name) {
  const found = Object.getOwnPropertyDescriptor(object, name);
  if (!found || !("value" in found) || !found.configurable) return;
  Object.defineProperty(object, name, {
    get() { return found.value; },
    set(value) {
      if (this === object) throw new TypeError(`${name} cannot be changed here`);
      Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
    },
    enumerable: false, configurable: false,
  });
}

const locked = new Set();

function freezeAll(roots) {
  const seen = locked, waiting = [...roots];
  while (waiting.length) {
    const each = waiting.pop();
    if (each === null || (typeof each !== "object" && typeof each !== "function") || seen.has(each)) continue;
    seen.add(each);
    const descriptors = Object.getOwnPropertyDescriptors(each);
    for (const name of Reflect.ownKeys(descriptors)) {
      const { value, get, set } = descriptors[name];
      waiting.push(value, get, set);
    }
    waiting.push(Object.getPrototypeOf(each));
    Object.freeze(each);
  }
}

// What a script has made at its start. A regular expression with the flag `g` or `y`, and the bytes of an array, cannot be frozen: a script
// that has one counts as varying.
function freezeConstants(values) {
  const seen = new Set(), waiting = [...values];
  while (waiting.length) {
    const each = waiting.pop();
    if (each === null || (typeof each !== "object" && typeof each !== "function") || locked.has(each) || seen.has(each)) continue;
    seen.add(each);
    if (ArrayBuffer.isView(each)) continue;
    if (!(each instanceof RegExp && (each.global || each.sticky))) Object.freeze(each);
    for (const name of Reflect.ownKeys(each)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(each, name);
      waiting.push(value, get, set);
    }
    waiting.push(Object.getPrototypeOf(each));
  }
}

function asText(value) {
  if (typeof value === "string") return value;
  if (typeof value === "bigint") return `${value}n`;
  try {
    const text = stringify(value, (_, inner) => (typeof inner === "bigint" ? `${inner}n` : inner instanceof Map ? [...inner] : inner));
    return text === undefined ? String(value) : text;
  } catch { return kindOf(value); }
}

// The end of the memory is not the fault of one row: the host decides
const isOutOfMemory = (error) => error instanceof Error && error.name === "InternalError" && error.message === "out of memory";

function describe(error) {
  const part = (name) => { try { const text = error[name]; return typeof text === "string" ? shorten(text, ERROR_WIDTH) : ""; } catch { return ""; } };
  if (error instanceof Error) return [error instanceof ResultError ? "result" : "raised", part("name") || "Error", part("message"), part("stack")];
  if (error === null) return ["nothing", "Error", "threw null", ""];
  return ["raised", "Error", `threw ${shorten(asText(error), 200)}`, ""];
}

// ---- rows

function start(options, hooks) {
  const log = [];
  const names = options.input.map((field) => stringify(field.n));
  const rowOf = evaluate(`(function (c, i) { return {${names.map((name, at) => `[${name}]: c[${at}][i]`)}}; })`);
  const types = options.output.map((field) => field.t);
  const outNames = options.output.map((field) => field.n);
  const kept = new Set(options.kept);
  const known = new Set([...outNames, ...options.kept]);
  const narrow = types.map((type) => orNull(writer(type, false))), wide = types.map((type) => orNull(writer(type, true)));
  const shared = options.output.map((field) => options.input.findIndex((each) => each.n === field.n && stringify(each.t) === stringify(field.t)));
  const keptAt = options.kept.map((name) => [name, options.input.findIndex((each) => each.n === name)]);
  const opAt = options.input.findIndex((each) => each.n === options.op);
  const putFields = evaluate(putterCode(types, outNames))(own);
  const mayBePromise = !known.has("then");
  lock(options, log);
  const make = evaluate(options.source);  // after the lock: also code around the function finds it closed

  function begin() {
    const made = make();
    freezeConstants(made.constants);
    if (typeof made.invoke !== "function") throw new TypeError("the script has no function");
    return made.invoke;
  }

  let first = begin();  // a script that cannot start says so at once
  return function run(text) {
    hooks.mark(NOWHERE);
    const request = parse(text), size = request.n;
    log.length = 0; log.dropped = 0;
    const columns = options.input.map((field, at) => {
      const { w, v } = request.cols[at], convert = orNull(reader(field.t, Boolean(w)));
      return convert === null ? v : v.map(convert);
    });
    const results = types.map(() => []), isWide = types.map(() => false), writers = narrow.slice();
    const from = [], deleted = [], errors = [];
    let count = 0, straight = true;
    const invoke = first ?? begin();  // each batch begins anew: nothing lasts longer, whatever the script keeps
    first = null;

    const place = { field: 0 };

    function add(row, index) {
      if (row === null || typeof row !== "object" || Array.isArray(row)) fail(`returned ${kindOf(row)}, expected an object, null or an array of objects`);
      const before = count;
      for (;;) {
        try {
          return put(row, index);
        } catch (error) {
          if (error !== WIDE) throw error instanceof ResultError && place.field < outNames.length ? new ResultError(`field \`${outNames[place.field]}\`: ${error.message}`) : error;
          takeBack(before);
          widen(place.field);
        }
      }
    }

    function widen(at) {
      results[at] = results[at].map(orNull(widener(types[at])));
      isWide[at] = true; writers[at] = wide[at];
    }

    function put(row, index) {
      let present = putFields(row, place, results, writers, isWide);
      for (let each = 0; each < keptAt.length; each++) {
        const [name, at] = keptAt[each], value = row[name];
        if (value === undefined) continue;
        present++;
        if (index >= 0 && value !== columns[at][index]) fail(`changes \`${name}\`, which stays with its row`);
      }
      if (mayBePromise && typeof row.then === "function") fail("returned a promise: a script is synchronous");
      const given = Object.keys(row);
      if (given.length !== present) {
        for (const name of given) if (!known.has(name)) fail(`\`${name}\` is not a field of the schema`);
      }
      from.push(index); count++;
    }

    function takeBack(rows) {
      for (const column of results) column.length = rows;
      from.length = rows; count = rows;
    }

    // a row of a changelog that is left out: its old row may have passed
    function leaveOut(index) {
      straight = false;
      if (opAt < 0 || columns[opAt][index] === "i") return;
      if (options.key.some((name) => shared[outNames.indexOf(name)] === undefined || shared[outNames.indexOf(name)] < 0) || !options.key.length) {
        fail("returned null for an update or delete of a changelog, and the deleted row has no primary key: return the key's columns, or a row");
      }
      deleted.push(count);
      add(Object.fromEntries(outNames.map((name, at) => [name, shared[at] < 0 ? null : columns[shared[at]][index]])), index);
    }

    function take(given, index) {
      if (given === null || (Array.isArray(given) && given.length === 1 && given[0] === null)) return leaveOut(index);
      if (given === undefined) fail("returned undefined: return a row, or null to leave the row out");
      if (!Array.isArray(given)) return add(given, index);
      if (given.length !== 1) {
        straight = false;
        if (opAt >= 0 && columns[opAt][index] !== "i") fail(`returned ${given.length} rows for an update or delete of a changelog: return one row, or null`);
      }
      for (const row of given) if (row !== null) add(row, index);
    }

    if (options.mode === "batch") {
      try {
        const rows = [];
        for (let index = 0; index < size; index++) rows.push(rowOf(columns, index));
        const given = invoke(rows);
        if (!Array.isArray(given)) fail(`returned ${kindOf(given)}, expected an array of rows`);
        for (const row of given) if (row !== null) add(row, -1);
      } catch (error) {
        if (isOutOfMemory(error)) throw error;
        takeBack(0); errors.push([-1, ...describe(error)]);
      }
      straight = false;
    } else {
      for (let index = 0; index < size; index++) {
        hooks.mark(index);
        const before = count;
        try {
          take(invoke(rowOf(columns, index)), index);
        } catch (error) {
          if (isOutOfMemory(error)) throw error;
          takeBack(before); straight = false;
          while (deleted.length && deleted[deleted.length - 1] >= before) deleted.pop();
          errors.push([index, ...describe(error)]);
        }
      }
    }
    hooks.mark(NOWHERE);
    return stringify({
      n: count, from: straight || options.mode === "batch" ? null : from, deleted, errors, log: log.slice(), unlogged: log.dropped || 0,
      cols: results.map((v, at) => ({ w: isWide[at], v })),
    });
  };
}

return start;
})()
