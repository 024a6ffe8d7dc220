// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @main(%hx: memref<64x256xbf16>, %hw: memref<512x256xbf16>, %hy: memref<64x512xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %x = mgpu.alloc %d : !mgpu.device -> memref<64x256xbf16>
  %w = mgpu.alloc %d : !mgpu.device -> memref<512x256xbf16>
  %y = mgpu.alloc %d : !mgpu.device -> memref<64x512xf32>
  mgpu.memcpy %x, %hx, %d, %host : memref<64x256xbf16>, memref<64x256xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %w, %hw, %d, %host : memref<512x256xbf16>, memref<512x256xbf16>, !mgpu.device, !mgpu.device
  linalg.fill ins(%zero : f32) outs(%y : memref<64x512xf32>)
  linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%x, %w : memref<64x256xbf16>, memref<512x256xbf16>) outs(%y : memref<64x512xf32>)
  mgpu.memcpy %hy, %y, %host, %d : memref<64x512xf32>, memref<64x512xf32>, !mgpu.device, !mgpu.device
  return
}
