// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product of bf16 with sums of f32, and a transposition.
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%h0: memref<1024x1024xbf16>, %h1: memref<1024x1024xbf16>, %h2: memref<1024x1024xf32>, %h3: memref<2048x2048xf32>, %h4: memref<2048x2048xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %b0 = mgpu.alloc %d : !mgpu.device -> memref<1024x1024xbf16>
  mgpu.memcpy %b0, %h0, %d, %host : memref<1024x1024xbf16>, memref<1024x1024xbf16>, !mgpu.device, !mgpu.device
  %b1 = mgpu.alloc %d : !mgpu.device -> memref<1024x1024xbf16>
  mgpu.memcpy %b1, %h1, %d, %host : memref<1024x1024xbf16>, memref<1024x1024xbf16>, !mgpu.device, !mgpu.device
  %b2 = mgpu.alloc %d : !mgpu.device -> memref<1024x1024xf32>
  mgpu.memcpy %b2, %h2, %d, %host : memref<1024x1024xf32>, memref<1024x1024xf32>, !mgpu.device, !mgpu.device
  %b3 = mgpu.alloc %d : !mgpu.device -> memref<2048x2048xf32>
  mgpu.memcpy %b3, %h3, %d, %host : memref<2048x2048xf32>, memref<2048x2048xf32>, !mgpu.device, !mgpu.device
  %b4 = mgpu.alloc %d : !mgpu.device -> memref<2048x2048xf32>
  mgpu.memcpy %b4, %h4, %d, %host : memref<2048x2048xf32>, memref<2048x2048xf32>, !mgpu.device, !mgpu.device
  linalg.matmul ins(%b0, %b1 : memref<1024x1024xbf16>, memref<1024x1024xbf16>) outs(%b2 : memref<1024x1024xf32>)
  linalg.transpose ins(%b3 : memref<2048x2048xf32>) outs(%b4 : memref<2048x2048xf32>) permutation = [1, 0]
  mgpu.memcpy %h0, %b0, %host, %d : memref<1024x1024xbf16>, memref<1024x1024xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %h1, %b1, %host, %d : memref<1024x1024xbf16>, memref<1024x1024xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %h2, %b2, %host, %d : memref<1024x1024xf32>, memref<1024x1024xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %h3, %b3, %host, %d : memref<2048x2048xf32>, memref<2048x2048xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %h4, %b4, %host, %d : memref<2048x2048xf32>, memref<2048x2048xf32>, !mgpu.device, !mgpu.device
  return
}
