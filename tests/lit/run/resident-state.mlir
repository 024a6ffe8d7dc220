// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The state of a resident argument is written once, after the last round; one
// that is never copied back is refused, not written as it came.
// RUN: mgpu-tune run %s --arg w=0 --arg a=1 --arg a@2=10 --arg a@3=100 --out w=%t.npy | FileCheck %s --check-prefix=WROTE
// WROTE: wrote w -> {{.*}}.npy (4xf32)
// RUN: mgpu-tune run %s --arg w=111 --arg a=0 --out w=%t.same.npy && cmp %t.npy %t.same.npy
// RUN: not mgpu-tune run %s --arg w=0 --arg a=1 --arg a@2=1 --out w@2=%t.2.npy 2>&1 | FileCheck %s --check-prefix=LATER
// LATER: error: --out w: 'w' is resident, and --out w is its state after the last round
// RUN: not mgpu-tune run %s --entry forgets --arg w=0 --arg a=1 --out w=%t.3.npy 2>&1 | FileCheck %s --check-prefix=FORGETS
// FORGETS: error: --out w: the program never copies the resident argument 'w' back to the host
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%w: memref<4xf32> {mgpu.role = "resident"}, %a: f32 {mgpu.role = "dynamic"}) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %b = func.call @step(%w, %a) : (memref<4xf32>, f32) -> memref<4xf32>
  mgpu.memcpy %w, %b, %host, %d : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  return
}
func.func @forgets(%w: memref<4xf32> {mgpu.role = "resident"}, %a: f32 {mgpu.role = "dynamic"}) {
  %b = func.call @step(%w, %a) : (memref<4xf32>, f32) -> memref<4xf32>
  return
}
func.func private @step(%w: memref<4xf32>, %a: f32) -> memref<4xf32> {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %b = mgpu.alloc %d : !mgpu.device -> memref<4xf32>
  mgpu.memcpy %b, %w, %d, %host : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d grid(%c1) block(%c4) {
    %i = gpu.thread_id x
    %v = memref.load %b[%i] : memref<4xf32>
    %r = arith.addf %v, %a : f32
    memref.store %r, %b[%i] : memref<4xf32>
  }
  return %b : memref<4xf32>
}
