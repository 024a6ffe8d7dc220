// RUN: mgpu-opt %s | FileCheck %s
// RUN: mgpu-opt %s > %t.once && mgpu-opt %t.once > %t.twice && diff %t.once %t.twice

// Every other spelling in circulation: the examples of the dialect's document
// word for word, and streams with their device. One canonical form prints.

mgpu.device_config @config
    #mgpu.device_config<numDevices = 4, deviceIds = [0, 2, 4, 6]>

// CHECK-LABEL: func.func @with_device
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[S:.*]]: !mgpu.stream)
func.func @with_device(%dev: !mgpu.device, %s: !mgpu.stream) {
  // CHECK-NEXT: mgpu.sync_stream %[[S]] : !mgpu.stream
  mgpu.sync_stream %dev %s : !mgpu.device, !mgpu.stream
  // CHECK-NEXT: mgpu.sync_stream %[[S]] {note} : !mgpu.stream
  mgpu.sync_stream %dev, %s {note} : !mgpu.device, !mgpu.stream
  // CHECK-NEXT: mgpu.destroy_stream %[[S]] : !mgpu.stream
  mgpu.destroy_stream %dev %s : !mgpu.device, !mgpu.stream
  // CHECK-NEXT: mgpu.destroy_stream %[[S]] {note} : !mgpu.stream
  mgpu.destroy_stream %dev, %s {note} : !mgpu.device, !mgpu.stream
  return
}

// CHECK-LABEL: func.func @quoted
// CHECK-SAME: (%[[S:.*]]: memref<256xf32>, %[[R:.*]]: memref<256xf32>, %[[C:.*]]: !mgpu.communicator, %[[D:.*]]: !mgpu.device)
func.func @quoted(%send: memref<256xf32>, %recv: memref<256xf32>, %comm: !mgpu.communicator, %dev0: !mgpu.device) {
  // CHECK-NEXT: mgpu.all_reduce %[[S]], %[[R]], %[[C]], sum : memref<256xf32>, memref<256xf32>, !mgpu.communicator
  mgpu.all_reduce %send, %recv, %comm, sum
      : memref<256xf32>, memref<256xf32>, !mgpu.communicator
  // CHECK-NEXT: mgpu.all_reduce %[[S]], %[[R]], %[[C]], sum : memref<256xf32>, memref<256xf32>, !mgpu.communicator
  mgpu.all_reduce %send, %recv, %comm, "sum"
      : memref<256xf32>, memref<256xf32>, !mgpu.communicator
  // CHECK-NEXT: mgpu.sharded_alloc %[[D]] logicalShape = [8] shardAxis = 0 shardKind = uniform
  %0 = mgpu.sharded_alloc %dev0 logicalShape = [8] shardAxis = 0 shardKind = "uniform" : !mgpu.device -> memref<8xf32>
  return
}

// CHECK-LABEL: func.func @scatter_gather
func.func @scatter_gather(%hostBuf: memref<1024xf32>, %hostDev: !mgpu.device,
    %dBuf0: memref<256xf32>, %dBuf1: memref<256xf32>, %dBuf2: memref<256xf32>, %dBuf3: memref<256xf32>,
    %dev0: !mgpu.device, %dev1: !mgpu.device, %dev2: !mgpu.device, %dev3: !mgpu.device, %s: !mgpu.stream) {
  // CHECK-NEXT: mgpu.scatter %arg0, %arg1, [%arg2, %arg3, %arg4, %arg5], [%arg6, %arg7, %arg8, %arg9] axis = 0 : memref<1024xf32>, !mgpu.device, [memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.scatter %hostBuf, %hostDev,
               %dBuf0, %dBuf1, %dBuf2, %dBuf3,
               %dev0, %dev1, %dev2, %dev3
      axis = 0
      : memref<1024xf32>, !mgpu.device,
        memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>,
        !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
  // CHECK-NEXT: mgpu.gather %arg0, %arg1, [%arg2, %arg3, %arg4, %arg5], [%arg6, %arg7, %arg8, %arg9] axis = 0 : memref<1024xf32>, !mgpu.device, [memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.gather %hostBuf, %hostDev,
              %dBuf0, %dBuf1, %dBuf2, %dBuf3,
              %dev0, %dev1, %dev2, %dev3
      axis = 0
      : memref<1024xf32>, !mgpu.device,
        memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>,
        !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
  // Flat lists with streams, and one list flat, the other not.
  // CHECK-NEXT: mgpu.gather %arg2, %arg1, [%arg3], [%arg6] streams [%arg10] : !mgpu.stream axis = 0 : memref<256xf32>, !mgpu.device, [memref<256xf32>], [!mgpu.device]
  mgpu.gather %dBuf0, %hostDev, %dBuf1, %dev0 streams [%s] : !mgpu.stream axis = 0
      : memref<256xf32>, !mgpu.device, [memref<256xf32>], [!mgpu.device]
  return
}

// CHECK-LABEL: func.func @uneven_scatter
func.func @uneven_scatter(%src: memref<100xf32>, %srcDev: !mgpu.device,
    %dBuf0: memref<34xf32>, %dBuf1: memref<33xf32>, %dBuf2: memref<33xf32>,
    %dev0: !mgpu.device, %dev1: !mgpu.device, %dev2: !mgpu.device) {
  // CHECK-NEXT: mgpu.uneven_scatter %arg0, %arg1, [%arg2, %arg3, %arg4], [%arg5, %arg6, %arg7] sliceSizes = [34, 33, 33] axis = 0 : memref<100xf32>, !mgpu.device, [memref<34xf32>, memref<33xf32>, memref<33xf32>], [!mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.uneven_scatter %src, %srcDev,
                      %dBuf0, %dBuf1, %dBuf2,
                      %dev0, %dev1, %dev2
      sliceSizes = [34, 33, 33] axis = 0
      : memref<100xf32>, !mgpu.device,
        memref<34xf32>, memref<33xf32>, memref<33xf32>,
        !mgpu.device, !mgpu.device, !mgpu.device
  return
}

// CHECK-LABEL: func.func @replicate
func.func @replicate(%weights: memref<512xf32>, %hostDev: !mgpu.device,
    %dev0: !mgpu.device, %dev1: !mgpu.device, %dev2: !mgpu.device, %dev3: !mgpu.device,
    %wBuf0: memref<512xf32>, %wBuf1: memref<512xf32>, %wBuf2: memref<512xf32>, %wBuf3: memref<512xf32>) {
  // CHECK-NEXT: mgpu.replicate %arg0, %arg1, [%arg2, %arg3, %arg4, %arg5], [%arg6, %arg7, %arg8, %arg9] : memref<512xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<512xf32>, memref<512xf32>, memref<512xf32>, memref<512xf32>]
  mgpu.replicate %weights, %hostDev,
                 %dev0, %dev1, %dev2, %dev3,
                 %wBuf0, %wBuf1, %wBuf2, %wBuf3
      : memref<512xf32>, !mgpu.device,
        !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device,
        memref<512xf32>, memref<512xf32>, memref<512xf32>, memref<512xf32>
  return
}

// CHECK-LABEL: func.func @sharded
func.func @sharded(%dev0: !mgpu.device, %dev1: !mgpu.device, %dev2: !mgpu.device, %dev3: !mgpu.device) {
  // CHECK-NEXT: %[[S:.*]]:4 = mgpu.sharded_alloc %arg0, %arg1, %arg2, %arg3 logicalShape = [1024, 512] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> memref<256x512xf32>, memref<256x512xf32>, memref<256x512xf32>, memref<256x512xf32>
  %s0, %s1, %s2, %s3 = mgpu.sharded_alloc %dev0, %dev1, %dev2, %dev3
      logicalShape = [1024, 512] shardAxis = 0 shardKind = uniform
      : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
      -> memref<256x512xf32>, memref<256x512xf32>,
         memref<256x512xf32>, memref<256x512xf32>
  // CHECK-NEXT: mgpu.sharded_free [%[[S]]#0, %[[S]]#1, %[[S]]#2, %[[S]]#3], [%arg0, %arg1, %arg2, %arg3] : [memref<256x512xf32>, memref<256x512xf32>, memref<256x512xf32>, memref<256x512xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.sharded_free %s0, %s1, %s2, %s3, %dev0, %dev1, %dev2, %dev3
      : memref<256x512xf32>, memref<256x512xf32>,
        memref<256x512xf32>, memref<256x512xf32>,
        !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device
  return
}
