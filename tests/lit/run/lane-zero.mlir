// RUN: mgpu-tune run %s --target host:1 --arg x=iota --out y=%t.npy
// RUN: %python -c "import sys,struct; print(*map(int,struct.unpack('<64f',open(sys.argv[1],'rb').read()[-256:])))" %t.npy | FileCheck %s
// RUN: mgpu-tune kernels %s --emit %t.texts | FileCheck %s --check-prefix=TABLE
// RUN: FileCheck %s --check-prefix=TEXT --input-file=%t.texts/main_kernel0.cu
// REQUIRES: nvrtc

// Lane 0 takes the 32 values of its subgroup, reverses each half of them, and
// deals them out again.
// CHECK: 15 14 {{.*}} 1 0 31 30 {{.*}} 17 16 47 46 {{.*}} 33 32 63 62 {{.*}} 49 48
// TABLE: main_kernel0 {{.*}} keeps its block: uses gpu.warp_execute_on_lane_0 (line {{[0-9]+}})
// TEXT: static __shared__
// TEXT: __syncwarp(laneMask(at.threadX, 64));
// TEXT: if (isFirst

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %b = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  mgpu.memcpy %b, %x, %d, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d grid(%c1) block(%c64) {
    %t = gpu.thread_id x
    %lane = gpu.lane_id
    %one = vector.load %b[%t] : memref<64xf32>, vector<1xf32>
    %turned = gpu.warp_execute_on_lane_0(%lane)[32] args(%one : vector<1xf32>) -> (vector<1xf32>) {
    ^bb0(%all: vector<32xf32>):
      %result = vector.shuffle %all, %all [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16] : vector<32xf32>, vector<32xf32>
      gpu.yield %result : vector<32xf32>
    }
    vector.store %turned, %b[%t] : memref<64xf32>, vector<1xf32>
  }
  mgpu.memcpy %y, %b, %host, %d : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
