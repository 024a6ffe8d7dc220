// Few long rows: a block for each, and what goes with their sums in the same
// launch. The text is the reviewed one.

// RUN: cd %{root}
// RUN: rm -rf %t && mgpu-tune kernels tests/lit/run/long-rows.mlir --emit %t > %t.out || true
// RUN: diff %{root}/tests/golden/long_rows.cu %t/centred_kernel0.cu
// RUN: mgpu-tune plan %s --explain | FileCheck %s --check-prefix=EXPLAIN
// EXPLAIN: long-rows.mlir:31:3 + {{.*}}long-rows.mlir:37:3

#xy = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

// x - the sum of its row
func.func @main(%hx: memref<40x600xf32>, %hs: memref<40xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %x = mgpu.alloc %d : !mgpu.device -> memref<40x600xf32>
  %s = mgpu.alloc %d : !mgpu.device -> memref<40xf32>
  mgpu.memcpy %x, %hx, %d, %host : memref<40x600xf32>, memref<40x600xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %s, %hs, %d, %host : memref<40xf32>, memref<40xf32>, !mgpu.device, !mgpu.device
  linalg.generic {indexing_maps = [#xy, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<40x600xf32>) outs(%s : memref<40xf32>) attrs = {mgpu.name = "centred"} {
  ^bb0(%in: f32, %sum: f32):
    %t = arith.addf %sum, %in : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#xy, #row, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<40x600xf32>, memref<40xf32>) outs(%x : memref<40x600xf32>) {
  ^bb0(%in: f32, %sum: f32, %o: f32):
    %t = arith.subf %in, %sum : f32
    linalg.yield %t : f32
  }
  mgpu.memcpy %hx, %x, %host, %d : memref<40x600xf32>, memref<40x600xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %hs, %s, %host, %d : memref<40xf32>, memref<40xf32>, !mgpu.device, !mgpu.device
  return
}
