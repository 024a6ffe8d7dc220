// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Opens @main: what the cases of this folder share.
mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%x: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %t0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1 : !mgpu.device, !mgpu.device -> !mgpu.communicator
  %a = mgpu.alloc %d0 : !mgpu.device -> memref<64xf32>
  %a2 = mgpu.alloc %d0 : !mgpu.device -> memref<64xf32>
  %b = mgpu.alloc %d1 : !mgpu.device -> memref<64xf32>
  %b2 = mgpu.alloc %d1 : !mgpu.device -> memref<64xf32>
