// Takes the hand networks, the built-in hand and their licences out of the installed npm packages (assets/package.json)
// and writes them to a data folder: each file checked against its SHA-256 sum, then renamed into place. Files that are
// right already are left alone; nothing is written when a source is missing or wrong.
//   node tools/unpack_assets.mjs NODE_MODULES DATA_FOLDER
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const sumsFile = process.env.SINEW_ASSET_SUMS || path.join(root, 'assets', 'SHA256SUMS'); // tests bring their own
const maxFileBytes = 64 << 20; // the largest file read here has 5.5 MB
const maxIndexEntries = 64; // the index has 3

/** An error that is told in one line, without a stack. */
class AssetError extends Error {}

function readBounded(file) {
  let size;
  try {
    size = fs.statSync(file).size;
  } catch {
    throw new AssetError(`${file} is not there: has the package changed?`);
  }
  if (size > maxFileBytes) throw new AssetError(`${file} has ${size} bytes, more than ${maxFileBytes}`);
  return fs.readFileSync(file);
}

/**
 * The index of a packed data file: the argument of the loader's only `loadPackage({"files": ...})` call, which is JSON.
 * It is parsed, never run. Returns a map from file name to {start, end}, byte positions inside `dataBytes` bytes.
 */
function readIndex(loaderFile, dataBytes) {
  const fail = (what) => new AssetError(`${loaderFile}: ${what}`);
  const calls = [...readBounded(loaderFile).toString('utf8').matchAll(/\bloadPackage\((\{"files":.*\})\);/g)];
  if (calls.length !== 1) throw fail(`${calls.length} calls of loadPackage({"files": ...}), expected 1`);
  let index;
  try {
    index = JSON.parse(calls[0][1]);
  } catch (error) {
    throw fail(`the index is not JSON: ${error.message}`);
  }
  if (index.remote_package_size !== dataBytes) {
    throw fail(`the index is of ${index.remote_package_size} bytes, the data file has ${dataBytes}`);
  }
  if (!Array.isArray(index.files) || index.files.length > maxIndexEntries) {
    throw fail(`"files" is not a list of at most ${maxIndexEntries} entries`);
  }
  const entries = new Map();
  for (const entry of index.files) {
    const { filename, start, end } = entry ?? {};
    if (typeof filename !== 'string' || entries.has(filename)) throw fail(`file name ${filename} is repeated or no text`);
    if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || end < start || end > dataBytes) {
      throw fail(`${filename} is bytes ${start} to ${end} of ${dataBytes}`);
    }
    entries.set(filename, { start, end });
  }
  return entries;
}

/** From the name of a file in the data folder to a function that reads its bytes. */
function assetSources(modules) {
  const hands = (name) => path.join(modules, '@mediapipe', 'hands', name);
  const profiles = (...names) => path.join(modules, '@webxr-input-profiles', 'assets', ...names);
  const packedModel = (name) => () => {
    const data = readBounded(hands('hands_solution_packed_assets.data'));
    const index = readIndex(hands('hands_solution_packed_assets_loader.js'), data.length);
    const entry = index.get(`/third_party/mediapipe/modules/palm_detection/${name}`);
    if (!entry) throw new AssetError(`${name} is not in the index of hands_solution_packed_assets.data`);
    return data.subarray(entry.start, entry.end);
  };
  const file = (from) => () => readBounded(from);
  return new Map([
    ['palm_detection_full.tflite', packedModel('palm_detection_full.tflite')],
    ['palm_detection_lite.tflite', packedModel('palm_detection_lite.tflite')],
    ['hand_landmark_full.tflite', file(hands('hand_landmark_full.tflite'))],
    ['hand_landmark_lite.tflite', file(hands('hand_landmark_lite.tflite'))],
    ['generic_hand_right.glb', file(profiles('dist', 'profiles', 'generic-hand', 'right.glb'))],
    // @mediapipe/hands names its licence and does not bring the text: sinew's own licence is the same one, Apache-2.0.
    ['LICENSE-mediapipe.txt', file(path.join(root, 'LICENSE'))],
    ['LICENSE-webxr-input-profiles.md', file(profiles('LICENSE.md'))],
  ]);
}

/** The lines of sha256sum(1): from file name to 64 lower-case hex digits. */
function readSums(file) {
  const sums = new Map();
  for (const line of readBounded(file).toString('utf8').split('\n')) {
    if (line === '') continue;
    const match = /^([0-9a-f]{64}) {2}([\w.-]+)$/.exec(line);
    if (!match) throw new AssetError(`${file}: not a line of sha256sum: ${line}`);
    sums.set(match[2], match[1]);
  }
  return sums;
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

function isIntact(file, sum) {
  try {
    return fs.statSync(file).size <= maxFileBytes && sha256(fs.readFileSync(file)) === sum;
  } catch {
    return false; // missing or unreadable: written anew
  }
}

/** The whole file under its name, or nothing: written beside it, flushed, renamed. */
function writeAtomically(file, bytes) {
  const temporary = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}.tmp`);
  try {
    const handle = fs.openSync(temporary, 'wx', 0o644);
    try {
      fs.writeFileSync(handle, bytes);
      fs.fsyncSync(handle);
    } finally {
      fs.closeSync(handle);
    }
    fs.renameSync(temporary, file);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw new AssetError(`${file}: ${error.message}`);
  }
}

function unpack(modules, folder) {
  const sums = readSums(sumsFile);
  const sources = assetSources(modules);
  for (const name of sums.keys()) {
    if (!sources.has(name)) throw new AssetError(`${sumsFile}: ${name} is no file of the packages`);
  }
  const wanted = [];
  for (const [name, read] of sources) {
    const sum = sums.get(name);
    if (!sum) throw new AssetError(`${sumsFile} has no sum of ${name}`);
    if (isIntact(path.join(folder, name), sum)) continue;
    const bytes = read();
    const found = sha256(bytes);
    if (found !== sum) throw new AssetError(`${name}: the package's has SHA-256 ${found}, expected ${sum}`);
    wanted.push([name, bytes]);
  }
  try {
    fs.mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new AssetError(`cannot make the folder ${folder}: ${error.message}`);
  }
  for (const [name, bytes] of wanted) writeAtomically(path.join(folder, name), bytes);
}

const [modules, folder, ...rest] = process.argv.slice(2);
if (!modules || !folder || rest.length > 0) {
  console.error('usage: node tools/unpack_assets.mjs NODE_MODULES DATA_FOLDER');
  process.exit(2);
}
try {
  unpack(modules, folder);
} catch (error) {
  console.error(`assets: ${error instanceof AssetError ? error.message : error.stack}`);
  process.exit(1);
}
