// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What no call from the entry reaches is not lowered, so a helper there may
// compute on memrefs of no device; a function that is called is lowered.
// RUN: mgpu-tune check %s 2>&1 | FileCheck %s
// RUN: not mgpu-tune check %s --entry caller 2>&1 | FileCheck %s --check-prefix=CALLED
// CHECK: ok: {{.*}} 1 node,
// CALLED: uncalled.mlir:[[@LINE+4]]:3: error: 'linalg.exp' op computes on a memref that is not a device's as far as the text shows
// CALLED: linalg.exp
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @helper(%x: memref<8xf32>) {
  linalg.exp ins(%x : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}
func.func @caller(%x: memref<8xf32>) {
  func.call @helper(%x) : (memref<8xf32>) -> ()
  return
}
func.func @main() {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<8xf32>
  linalg.fill ins(%one : f32) outs(%a : memref<8xf32>)
  return
}
