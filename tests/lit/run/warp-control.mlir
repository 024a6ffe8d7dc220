// All threads of a subgroup agree here, but not all of the block. Where lanes
// surely part it is an error on each target, where memory says so it stops.
// RUN: mgpu-tune run %s --target host:1 --out y=%t.npy
// RUN: %python -c "import sys,struct; print(*struct.unpack('<64i',open(sys.argv[1],'rb').read()[-256:]))" %t.npy | FileCheck %s --check-prefix=RUNS
// RUN: rm %t.npy
// RUN: sed 's/cmpi eq, %%warp, %%zero/cmpi ult, %%t, %%c5/' %s > %t.mlir
// RUN: %{exits} 1 mgpu-tune run %t.mlir --target host:1 --out y=%t.npy | FileCheck %s
// RUN: %{exits} 1 mgpu-tune kernels %t.mlir | FileCheck %s
// RUN: not ls %t.npy
// RUN: sed 's/cmpi eq, %%warp, %%zero : index/cmpi eq, %%read, %%one : i32/' %s > %t.mlir
// RUN: %{exits} 1 mgpu-tune run %t.mlir --target host:1 --out y=%t.npy | FileCheck %s --check-prefix=STOPS
// RUN: mgpu-tune kernels %t.mlir | FileCheck %s --check-prefix=KERNEL
// RUN: not ls %t.npy

// RUNS: 1 0 3 2 5 4 {{.*}} 31 30 0 0 0 {{.*}} 0
// CHECK: mgpu-tune: error: {{.*}}.mlir:[[@LINE+29]]:17: 'gpu.shuffle' op is under control flow that is not the same for all lanes of a subgroup: they part at the 'scf.if' at {{.*}}.mlir:[[@LINE+28]]:5; move it to where all of them pass (kernel main_kernel0)
// STOPS: mgpu-tune: error: '{{.*}}.mlir': kernel main_kernel0 ({{.*}}.mlir:[[@LINE+13]]:3) has some lanes of a subgroup come to the 'gpu.shuffle' at {{.*}}.mlir:[[@LINE+28]]:17 and others not: all of them or none must
// KERNEL: main_kernel0

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%y: memref<64xi32>) {
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
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %zero = arith.constant 0 : index
    %null = arith.constant 0 : i32
    %warp = gpu.subgroup_id : index
    %c5 = arith.constant 5 : index
    %bit = arith.andi %v, %one : i32
    memref.store %bit, %a[%t] : memref<64xi32>
    %read = memref.load %a[%t] : memref<64xi32>
    memref.store %null, %a[%t] : memref<64xi32>
    %first = arith.cmpi eq, %warp, %zero : index
    scf.if %first {
      %r, %ok = gpu.shuffle xor %v, %one, %width : i32
      memref.store %r, %a[%t] : memref<64xi32>
    }
  }
  mgpu.memcpy %y, %a, %host, %d : memref<64xi32>, memref<64xi32>, !mgpu.device, !mgpu.device
  return
}
