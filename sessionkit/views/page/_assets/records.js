// The records of the page, from the columns in it.

const KINDS = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

async function unpack({ layout, data }) {
  const packed = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const unzipped = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(unzipped).arrayBuffer();
  const columns = new Map();
  let at = 0;
  for (const [name, kind, count] of layout) {
    const length = count * KINDS[kind].BYTES_PER_ELEMENT;
    columns.set(name, new KINDS[kind](bytes.slice(at, at + length)));
    at += length;
  }
  return columns;
}

// Columns of differences made whole: the times, stream time and offset of each record, its slot (key and partition).
function recordsOf(columns, told) {
  const key = columns.get("key");
  const count = key.length;
  const partitions = told.partitionNumbers.length;
  const partition = columns.get("partition") ?? new Uint8Array(count);
  const reason = columns.get("reason") ?? new Uint8Array(count);
  const rise = columns.get("stream");
  const late = columns.get("late");
  const step = columns.get("offset");
  const [stream, time, offset] = [0, 1, 2].map(() => new Float64Array(count));
  const slot = new Int32Array(count);
  const now = told.firstStream.slice();
  const before = told.before.slice(); // records of each partition before there is a stream time
  const place = told.firstOffset.slice();
  for (let i = 0; i < count; i++) {
    const p = partition[i];
    stream[i] = before[p]-- > 0 ? NONE : (now[p] += rise[i] * told.unit);
    offset[i] = place[p] += step[i];
    time[i] = stream[i] - late[i] * told.unit;
    slot[i] = reason[i] ? NONE : key[i] * partitions + p;
  }
  const values = [];
  for (let n = 0; columns.has(`value${n}`); n++) {
    const missing = columns.get(`missing${n}`);
    values.push(Array.from(columns.get(`value${n}`), (value, i) => (missing?.[i] ? null : value)));
  }
  const { lastStream, partitionNumbers, labels } = told;
  const label = (i) => (labels ? labels[columns.get("label")[i]] : ""); // in quotation marks
  return { count, key, label, partition, partitions, partitionNumbers, reason, stream, time, offset, slot, lastStream, values };
}
