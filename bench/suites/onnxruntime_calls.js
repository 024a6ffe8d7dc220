// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of one ONNX model in ONNX Runtime, on one thread, for torch_layers.py.
// Usage: node onnxruntime_calls.js MODEL.onnx RESULT TYPE:SHAPE:FILE..., with the folder of onnxruntime-node in NODE_PATH
// It writes the result for these inputs, and its version to standard output. Each line of standard input is then
// a number of calls, and is answered by the microseconds of CPU time that one of them took.
'use strict';
const fs = require('fs');
const readline = require('readline');
const ort = require('onnxruntime-node');

const arrays = {float32: Float32Array, int64: BigInt64Array};

function tensor(word) {
  const [type, shape, file] = word.split(':');
  const data = new arrays[type](new Uint8Array(fs.readFileSync(file)).buffer);
  return new ort.Tensor(type, data, shape.split('x').map(Number));
}

async function main([model, result, ...inputs]) {
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential', graphOptimizationLevel: 'all'});
  const feeds = Object.fromEntries(inputs.map((word, k) => [session.inputNames[k], tensor(word)]));
  const first = (await session.run(feeds))[session.outputNames[0]].data;
  fs.writeFileSync(result, new Uint8Array(first.buffer, first.byteOffset, first.byteLength));
  console.log(ort.env.versions.node);
  for await (const line of readline.createInterface({input: process.stdin})) {
    const count = Number(line), start = process.cpuUsage();
    for (let k = 0; k < count; ++k)
      await session.run(feeds);
    const {user, system} = process.cpuUsage(start);
    console.log((user + system) / count);
  }
}

main(process.argv.slice(2));
