// node section.mjs SECTION.json GUEST.wasm: appends the custom section merganser.ssdlet, which says what the
// guest takes and gives, to a module that has none.
import { readFileSync, writeFileSync } from "node:fs";

const [jsonPath, wasmPath] = process.argv.slice(2);
const json = Buffer.from(JSON.stringify(JSON.parse(readFileSync(jsonPath, "utf8"))));

// A number in LEB128, as lengths are written in WebAssembly.
function length(n) {
  const bytes = [];
  for (; n >= 128; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
  return Buffer.from([...bytes, n]);
}

const name = Buffer.from("merganser.ssdlet");
const content = Buffer.concat([length(name.length), name, json]);
const section = Buffer.concat([Buffer.from([0]), length(content.length), content]);
writeFileSync(wasmPath, Buffer.concat([readFileSync(wasmPath), section]));
