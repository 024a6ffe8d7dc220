// A check that fails in a kernel stops the program, after what was printed.
// RUN: mgpu-tune run %s --target host:1 --arg limit=64
// RUN: %{exits} 1 mgpu-tune run %s --target host:1 --arg limit=63 --out y=%t.npy | FileCheck %s
// RUN: not ls %t.npy
// RUN: %{exits} 1 mgpu-tune tune %s --target host:1 --arg limit=63 --db %t.db | FileCheck %s --check-prefix=TUNE
// RUN: mgpu-tune kernels %s --arg limit=63 --emit %t && FileCheck %s --check-prefix=TEXT < %t/main_kernel0.cu

// TUNE: crashed: Illegal instruction; `mgpu-tune run` says where
// CHECK: the last is 62
// CHECK: assert.mlir:[[@LINE+24]]: (unknown): block: [0,0,0], thread: [63,0,0] Assertion `too "large"` failed.
// CHECK: mgpu-tune: error: '{{.*}}assert.mlir': kernel main_kernel0 ({{.*}}assert.mlir:[[@LINE+13]]:3) fails its assertion 'too "large"' at {{.*}}assert.mlir:[[@LINE+23]]:5
// TEXT: __trap(); // "too \"large\""

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%y: memref<64xi32>, %limit: i32) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xi32>
  mgpu.launch %d grid(%c1) block(%c64) {
    %t = gpu.thread_id x
    %v = arith.index_cast %t : index to i32
    %in = arith.cmpi slt, %v, %limit : i32
    %one = arith.constant 1 : i32
    %last = arith.subi %limit, %one : i32
    %is = arith.cmpi eq, %v, %last : i32
    scf.if %is {
      gpu.printf "the last is %d\0A", %v : i32
    }
    cf.assert %in, "too \"large\""
    memref.store %v, %a[%t] : memref<64xi32>
  }
  mgpu.memcpy %y, %a, %host, %d : memref<64xi32>, memref<64xi32>, !mgpu.device, !mgpu.device
  return
}
