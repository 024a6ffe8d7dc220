// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built once against each MPI (device/mpi/CMakeLists.txt).
#include "device/mpi/MpiPlugin.h"

#include <cstdio>
#include <mpi.h>
#include <new>

namespace {

struct Request {
  MPI_Request request;
};

MPI_Comm communicator = MPI_COMM_NULL;
bool isOurs = false; ///< MPI was started here

int begin(const void *given, char *why, size_t whyBytes) {
  int isRunning = 0, isOver = 0, level = 0;
  MPI_Initialized(&isRunning);
  MPI_Finalized(&isOver);
  if (isOver) {
    std::snprintf(why, whyBytes, "MPI has been finalized in this process");
    return 1;
  }
  if (!isRunning && given) {
    std::snprintf(why, whyBytes,
                  "a communicator is given, and MPI has not been started");
    return 1;
  }
  if (!isRunning) {
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) !=
        MPI_SUCCESS) {
      std::snprintf(why, whyBytes, "MPI_Init_thread failed");
      return 1;
    }
    isOurs = true;
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) {
    std::snprintf(why, whyBytes,
                  "MPI takes calls of one thread alone here: start it with "
                  "MPI_THREAD_SERIALIZED");
    return 1;
  }
  const MPI_Comm of =
      given ? *static_cast<const MPI_Comm *>(given) : MPI_COMM_WORLD;
  if (MPI_Comm_dup(of, &communicator) != MPI_SUCCESS) {
    std::snprintf(why, whyBytes, "MPI_Comm_dup failed");
    return 1;
  }
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  return 0;
}

int ownRank() {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

int numRanks() {
  int count = 0;
  MPI_Comm_size(communicator, &count);
  return count;
}

void *given(Request *request, int code) {
  if (code == MPI_SUCCESS)
    return request;
  delete request;
  return nullptr;
}

void *sendBytes(int to, int tag, const void *bytes, size_t size) {
  auto *request = new (std::nothrow) Request;
  if (!request)
    return nullptr;
  return given(request, MPI_Isend(bytes, int(size), MPI_BYTE, to, tag,
                                  communicator, &request->request));
}

void *receiveBytes(int from, int tag, void *bytes, size_t size) {
  auto *request = new (std::nothrow) Request;
  if (!request)
    return nullptr;
  return given(request, MPI_Irecv(bytes, int(size), MPI_BYTE, from, tag,
                                  communicator, &request->request));
}

int test(void *opaque, size_t *size) {
  auto *request = static_cast<Request *>(opaque);
  MPI_Status status;
  int isDone = 0, count = 0;
  if (MPI_Test(&request->request, &isDone, &status) != MPI_SUCCESS) {
    delete request;
    return -1;
  }
  if (!isDone)
    return 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *size = size_t(count);
  delete request;
  return 1;
}

void cancel(void *opaque) {
  MPI_Cancel(&static_cast<Request *>(opaque)->request);
}

int probe(int tag, int *from, size_t *size) {
  MPI_Status status;
  int isThere = 0, count = 0;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, communicator, &isThere, &status) !=
          MPI_SUCCESS ||
      !isThere)
    return 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *from = status.MPI_SOURCE;
  *size = size_t(count);
  return 1;
}

void end() {
  MPI_Comm_free(&communicator);
  if (isOurs)
    MPI_Finalize();
}

const MgpuMpi calls = {MGPU_MPI_PLUGIN_VERSION,
                       begin,
                       ownRank,
                       numRanks,
                       sendBytes,
                       receiveBytes,
                       test,
                       cancel,
                       probe,
                       end};

} // namespace

extern "C" const MgpuMpi *mgpuMpi() { return &calls; }
