// RUN: mgpu-tune run %s --target host:1 | FileCheck %s
// RUN: sed 's/block %%d/block %%s/' %s > %t.mlir
// RUN: %{exits} 5 mgpu-tune run %t.mlir --target host:1 | FileCheck %s --check-prefix=REFUSED

// The i64 and the index are read in full whatever length the format gives.
// CHECK: block 0 thread 0: 9000000000 0.250000 100%
// CHECK: block 0 thread 1: 9000000001 0.250000 100%
// REFUSED: 'gpu.printf' op has a format with the conversion '%s', which kernels cannot print

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %d = mgpu.get_device %c0 : !mgpu.device
  mgpu.launch %d grid(%c1) block(%c2) {
    %b = gpu.block_id x
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i64
    %large = arith.constant 9000000000 : i64
    %n = arith.addi %large, %i : i64
    %f = arith.constant 0.25 : f32
    gpu.printf "block %d thread %ld: %d %f 100%%\n", %b, %t, %n, %f : index, index, i64, f32
  }
  return
}
