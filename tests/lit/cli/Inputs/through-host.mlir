// What GPU 1 takes up is what GPU 0 brought to the host.

mgpu.device_config @config #mgpu.device_config<numDevices = 2>

func.func @main(%x: memref<16xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %a = mgpu.alloc %d0 : !mgpu.device -> memref<16xf32>
  %b = mgpu.alloc %d1 : !mgpu.device -> memref<16xf32>
  mgpu.launch %d0 grid(%c1) block(%c16) {
    %i = gpu.thread_id x
  }
  mgpu.memcpy %x, %a, %host, %d0 : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b, %x, %d1, %host : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %x, %b, %host, %d1 : memref<16xf32>, memref<16xf32>, !mgpu.device, !mgpu.device
  return
}
