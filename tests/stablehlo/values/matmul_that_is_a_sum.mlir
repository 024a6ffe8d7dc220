// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch that says it is a product and adds: passes of ours note such a fact for later ones, and a text's is
// dropped, so that no target believes it.
// argument a: 2x2xf32 = 1 2 3 4
// argument b: 2x2xf32 = 10 20 30 40
// expected c: 2x2xf32 = 11 22 33 44
// doubles
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%a: memref<2x2xf32>, %b: memref<2x2xf32>, %c: memref<2x2xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %da = mgpu.alloc %d : !mgpu.device -> memref<2x2xf32>
  %db = mgpu.alloc %d : !mgpu.device -> memref<2x2xf32>
  %dc = mgpu.alloc %d : !mgpu.device -> memref<2x2xf32>
  mgpu.memcpy %da, %a, %d, %host : memref<2x2xf32>, memref<2x2xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %db, %b, %d, %host : memref<2x2xf32>, memref<2x2xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d args(%da, %db, %dc : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>) grid(%c2) block(%c2) attributes {mgpu.matmul, mgpu.product = #mgpu.product<m = 2, n = 2, k = 2, a = f32, b = f32, c = f32>} {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %p = memref.load %da[%i, %j] : memref<2x2xf32>
    %q = memref.load %db[%i, %j] : memref<2x2xf32>
    %s = arith.addf %p, %q : f32
    memref.store %s, %dc[%i, %j] : memref<2x2xf32>
  }
  mgpu.memcpy %c, %dc, %host, %d : memref<2x2xf32>, memref<2x2xf32>, !mgpu.device, !mgpu.device
  return
}
