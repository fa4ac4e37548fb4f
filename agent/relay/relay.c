/* The relay between a miner and a container of an agent, as docs/market.md section 9.5 has it.
 *
 *     relay MILLISECONDS
 *
 * It passes bytes between its own standard input and output and port 8080 of 127.0.0.1, once somebody
 * listens there. What it puts out comes in parts: their length in two bytes, the higher first, and the bytes;
 * a part of no bytes says that the connection was closed. It ends when its input ends, when its time is over, or some seconds after the connection was
 * closed, in which the processor time of the agent can be read. As process 1 of the container's namespace it
 * takes all other processes with it.
 *
 * It is alone in its image, so it needs no library and no loader: build.sh. */

typedef long word;
typedef unsigned char byte;

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, CLOSE = 3, SOCKET = 41, CONNECT = 42, SENDTO = 44, RECVFROM = 45 };
enum { GETSOCKOPT = 55, PPOLL = 271, EXIT = 231, SIGACTION = 13, CLOCK_GETTIME = 228 };

static word call(word number, word a, word b, word c, word d, word e, word f) {
  register word r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  word result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call begin\n");

#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, CLOSE = 57, SOCKET = 198, CONNECT = 203, SENDTO = 206, RECVFROM = 207 };
enum { GETSOCKOPT = 209, PPOLL = 73, EXIT = 94, SIGACTION = 134, CLOCK_GETTIME = 113 };

static word call(word number, word a, word b, word c, word d, word e, word f) {
  register word x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
  register word x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x0, sp\n  bl begin\n");

#else
#error "no system calls are known for this processor"
#endif

enum { INPUT, OUTPUT };
enum { STREAM = 1, NONBLOCK = 04000, INET = 2, DONTWAIT = 0x40, NOSIGNAL = 0x4000 };
enum { IN = 1, OUT = 4, ERROR = 8, HUNG_UP = 16 };
enum { AGAIN = -11, INTERRUPTED = -4, IN_PROGRESS = -115 };
enum { RETRY_MS = 5, LINGER_MS = 5000, HEAD = 2, PART = 4096 };
/* How it ends. */
enum { DONE = 0, LATE = 1, WRONG_USE = 2, BROKEN = 3, LEFT = 4 };

struct poll { int file; short wanted, got; };
struct time { word seconds, nanoseconds; };
struct address { unsigned short family; byte port[2], ip[4], zero[8]; };
/* What was read and is not written yet; never more than a pipe takes at once. */
struct part { word at, end; byte bytes[PART]; };

static word deadline;

static void quit(word code) {
  for (;;) call(EXIT, code, 0, 0, 0, 0, 0);
}

static word now(void) {
  struct time time = {0, 0};
  call(CLOCK_GETTIME, 1, (word)&time, 0, 0, 0, 0);
  return time.seconds * 1000 + time.nanoseconds / 1000000;
}

/* Waits at most so long, and never longer than its time. Whoever closes the input ends the relay. */
static void wait(struct poll *files, word count, word most) {
  word left = deadline - now();
  if (left <= 0) quit(LATE);
  if (left > most) left = most;
  struct time time = {left / 1000, left % 1000 * 1000000};
  word ready = call(PPOLL, (word)files, count, (word)&time, 0, 0, 0);
  if (ready < 0 && ready != INTERRUPTED) quit(BROKEN);
  if (ready <= 0)
    for (word index = 0; index < count; index++) files[index].got = 0;
  if (files[0].got & (HUNG_UP | ERROR)) quit(LEFT);
}

static int connected(void) {
  struct address address = {INET, {8080 >> 8, 8080 & 255}, {127, 0, 0, 1}, {0}};
  for (;;) {
    word socket = call(SOCKET, INET, STREAM | NONBLOCK, 0, 0, 0, 0);
    if (socket < 0) quit(BROKEN);
    struct poll files[2] = {{INPUT, 0, 0}, {(int)socket, OUT, 0}};
    word fault = call(CONNECT, socket, (word)&address, sizeof address, 0, 0, 0);
    if (fault == IN_PROGRESS) {
      while (!files[1].got) wait(files, 2, 1000);
      int error = 0, size = sizeof error;
      call(GETSOCKOPT, socket, 1, 4, (word)&error, (word)&size, 0);
      fault = error;
    }
    if (!fault) return (int)socket;
    call(CLOSE, socket, 0, 0, 0, 0, 0);
    wait(files, 1, RETRY_MS);
  }
}

static void relay(int socket) {
  static struct part in, out;
  int is_over = 0;
  while (!is_over || out.at < out.end) {
    struct poll files[3] = {
        {INPUT, in.at < in.end ? 0 : IN, 0},
        {is_over || (out.at < out.end && in.at == in.end) ? -1 : socket,
         (in.at < in.end ? OUT : 0) | (out.at < out.end ? 0 : IN), 0},
        {out.at < out.end ? OUTPUT : -1, OUT, 0},
    };
    wait(files, 3, 1000);
    if (files[0].got & IN) {
      in.at = 0;
      in.end = call(READ, INPUT, (word)in.bytes, PART, 0, 0, 0);
      if (in.end <= 0) quit(LEFT);
    }
    if (files[1].got & OUT) {
      word sent = call(SENDTO, socket, (word)(in.bytes + in.at), in.end - in.at, DONTWAIT | NOSIGNAL, 0, 0);
      /* Who reads no more may still answer. */
      if (sent > 0) in.at += sent;
      else if (sent != AGAIN && sent != INTERRUPTED) in.at = in.end;
    }
    if (out.at == out.end && files[1].got & (IN | HUNG_UP | ERROR)) {
      word got = call(RECVFROM, socket, (word)(out.bytes + HEAD), PART - HEAD, DONTWAIT, 0, 0);
      if (got == AGAIN || got == INTERRUPTED) continue;
      is_over = got <= 0;
      if (is_over) got = 0;
      out.bytes[0] = got >> 8;
      out.bytes[1] = got & 255;
      out.at = 0;
      out.end = got + HEAD;
    }
    if (files[2].got) {
      word written = call(WRITE, OUTPUT, (word)(out.bytes + out.at), out.end - out.at, 0, 0, 0);
      if (written < 0 && written != AGAIN && written != INTERRUPTED) quit(BROKEN);
      if (written > 0) out.at += written;
    }
  }
}

/* The stack has the number of arguments, and then pointers to them. */
void begin(word *stack) {
  if (stack[0] != 2) quit(WRONG_USE);
  word milliseconds = 0;
  for (const byte *digit = (const byte *)stack[2]; *digit; digit++) {
    if (*digit < '0' || *digit > '9' || milliseconds > 100000000) quit(WRONG_USE);
    milliseconds = milliseconds * 10 + *digit - '0';
  }
  deadline = now() + milliseconds;
  /* Nobody waits for processes that the agent leaves behind: SIGCHLD is ignored, so they leave none. */
  word ignored[4] = {1, 0, 0, 0};
  call(SIGACTION, 17, (word)ignored, 0, 8, 0, 0);
  relay(connected());
  struct poll input = {INPUT, 0, 0};
  word end = now() + LINGER_MS;
  for (word left = LINGER_MS; left > 0; left = end - now()) wait(&input, 1, left);
  quit(DONE);
}
