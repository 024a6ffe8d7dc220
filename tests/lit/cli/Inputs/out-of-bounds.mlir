// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
mgpu.device_config @c #mgpu.device_config<numDevices = 1>
func.func @main(%x: memref<4xindex>, %y: memref<4xindex>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<4xindex>
  mgpu.memcpy %a, %x, %d, %host : memref<4xindex>, memref<4xindex>, !mgpu.device, !mgpu.device
  mgpu.launch %d grid(%c1) block(%c4) {
    %i = gpu.thread_id x
    %v = memref.load %a[%i] : memref<4xindex>
    memref.store %i, %a[%v] : memref<4xindex>
  }
  mgpu.memcpy %y, %a, %host, %d : memref<4xindex>, memref<4xindex>, !mgpu.device, !mgpu.device
  return
}
func.func @divide(%x: memref<4xindex>, %y: memref<4xindex>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<4xindex>
  mgpu.memcpy %a, %x, %d, %host : memref<4xindex>, memref<4xindex>, !mgpu.device, !mgpu.device
  mgpu.launch %d grid(%c1) block(%c4) {
    %i = gpu.thread_id x
    %v = memref.load %a[%i] : memref<4xindex>
    %q = arith.divsi %i, %v : index
    memref.store %q, %a[%i] : memref<4xindex>
  }
  mgpu.memcpy %y, %a, %host, %d : memref<4xindex>, memref<4xindex>, !mgpu.device, !mgpu.device
  return
}
