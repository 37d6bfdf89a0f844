/* The limit of the machine: what is published is framed once and written to every socket, and nothing else is done. No keys,
 * no ids, no heartbeats, no resuming. Two threads, each with its own listener, epoll and half of the subscribers.
 *
 *   limit PORT each      one write per message and subscriber
 *   limit PORT waiting   all messages that wait for a subscriber leave in one write
 *   limit PORT beats     nothing is published; every subscriber is written a heartbeat every 10 s, spread evenly over that time
 *   limit PORT deep      the same, and a third thread takes publications meanwhile, so that many more wait: as many as the ring
 *                        holds. That is cheaper, and not what anybody needs who has few publications in flight.
 *
 * Messages lie back to back in a ring that is mapped twice in a row, so that any run of them is one piece of memory. A publication
 * is acknowledged once it is in the ring; while the ring is full, publishers wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, RING = 1 << 16, ENDS = 1 << 14, REQUEST = 1 << 14 };

struct conn {
	int fd, stalled;
	uint64_t off, msg;      /* a subscriber's place: in bytes and in messages */
	char *in;               /* a publisher's or a new connection's request so far */
	int len;
};

struct thread {
	int epoll, listener, event, n, cap;
	struct conn **conns;    /* subscribers */
	int64_t tick;           /* the next heartbeats */
	int beaten;             /* whose turn it was last */
	uint64_t served;        /* everybody who could was brought to here */
	struct conn *waiting[64]; /* publishers that wait for room */
	int nwaiting;
	_Atomic uint64_t tail;  /* nobody here needs anything before it */
	_Atomic int asleep;
};

static struct thread threads[THREADS];
static int publishers;          /* epoll of the thread that takes publications */
static char *ring;
static _Atomic uint64_t head, messages;
static uint64_t ends[ENDS];     /* where a message ends */
static pthread_mutex_t publishing = PTHREAD_MUTEX_INITIALIZER;
static int one_by_one, deep, beats, port;

static void die(const char *what) { perror(what); exit(1); }

static void wake(void) {
	uint64_t one = 1;
	for (int i = 0; i < THREADS; i++)
		if (atomic_exchange(&threads[i].asleep, 0))
			if (write(threads[i].event, &one, sizeof one) < 0) {}
}

/* append puts a frame into the ring; 0 while there is no room. */
static int append(const char *body, int n) {
	int ok = 0, len = n + 8;
	pthread_mutex_lock(&publishing);
	uint64_t at = head, tail = at;
	for (int i = 0; i < THREADS; i++)
		if (threads[i].tail < tail) tail = threads[i].tail;
	if (at + len - tail <= RING) {
		char *p = ring + at % RING;
		memcpy(p, "data: ", 6);
		memcpy(p + 6, body, n);
		memcpy(p + 6 + n, "\n\n", 2);
		ends[messages % ENDS] = at + len;
		head = at + len;
		messages++;
		ok = 1;
	}
	pthread_mutex_unlock(&publishing);
	return ok;
}

static void drop(struct thread *t, struct conn *c) {
	close(c->fd);
	for (int i = 0; i < t->nwaiting; i++)
		if (t->waiting[i] == c) t->waiting[i] = t->waiting[--t->nwaiting];
	for (int i = 0; i < t->n; i++)
		if (t->conns[i] == c) t->conns[i] = t->conns[--t->n];
	free(c->in);
	free(c);
}

static void subscribe(struct thread *t, struct conn *c) {
	static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
	pthread_mutex_lock(&publishing);
	c->off = head;
	c->msg = messages;
	pthread_mutex_unlock(&publishing);
	free(c->in);
	c->in = NULL;
	if (send(c->fd, hello, sizeof hello - 1, MSG_NOSIGNAL) < 0) {}
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 1024;
		t->conns = realloc(t->conns, t->cap * sizeof *t->conns);
	}
	t->conns[t->n++] = c;
}

/* publish takes one request off a publisher's buffer; 0 if there is none, or no room for it. Without a thread it waits. */
static int publish(struct thread *t, struct conn *c) {
	static const char done[] = "HTTP/1.1 204 No Content\r\n\r\n";
	char *end = memmem(c->in, c->len, "\r\n\r\n", 4);
	if (!end) return 0;
	char *length = memmem(c->in, end - c->in, "Content-Length: ", 16);
	int n = length ? atoi(length + 16) : 0, all = end + 4 - c->in + n;
	if (c->len < all) return 0;
	while (!append(end + 4, n)) {
		if (t) {
			if (t->nwaiting < 64) t->waiting[t->nwaiting++] = c;
			return 0;
		}
		usleep(100);
	}
	memmove(c->in, c->in + all, c->len -= all);
	if (send(c->fd, done, sizeof done - 1, MSG_NOSIGNAL) < 0) {}
	wake();
	return 1;
}

static void *take_publications(void *arg) {
	struct epoll_event events[16];
	for (;;) {
		int n = epoll_wait(publishers, events, 16, -1);
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			ssize_t got = recv(c->fd, c->in + c->len, REQUEST - c->len, MSG_DONTWAIT);
			if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
			if (got <= 0) {
				close(c->fd);
				free(c->in);
				free(c);
				continue;
			}
			c->len += got;
			while (publish(NULL, c)) {}
		}
	}
	return arg;
}

static void take_input(struct thread *t, struct conn *c) {
	char scrap[512], *to = c->in ? c->in + c->len : scrap;
	if (deep && c->in && recv(c->fd, scrap, 4, MSG_DONTWAIT | MSG_PEEK) == 4 && !memcmp(scrap, "POST", 4)) {
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
		epoll_ctl(t->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		epoll_ctl(publishers, EPOLL_CTL_ADD, c->fd, &e);
		return;
	}
	ssize_t n = recv(c->fd, to, c->in ? REQUEST - c->len : (int)sizeof scrap, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
	if (n <= 0) { drop(t, c); return; }
	if (!c->in) return;
	c->len += n;
	if (c->len >= 4 && !memcmp(c->in, "POST", 4))
		while (publish(t, c)) {}
	else if (memmem(c->in, c->len, "\r\n\r\n", 4))
		subscribe(t, c);
}

static void take_connections(struct thread *t) {
	for (;;) {
		int fd = accept4(t->listener, NULL, NULL, SOCK_NONBLOCK), on = 1;
		if (fd < 0) return;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		struct conn *c = calloc(1, sizeof *c);
		c->fd = fd;
		c->in = malloc(REQUEST);
		struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLET, .data.ptr = c};
		epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e);
	}
}

/* serve writes to everybody who misses something, and returns whether somebody who can take more still does. */
static int serve(struct thread *t) {
	uint64_t to = head, tail = to;
	int more = 0;
	for (int i = 0; i < t->n; i++) {
		struct conn *c = t->conns[i];
		if (!c->stalled && c->off < to) {
			uint64_t until = to;
			/* A message half sent is finished first, so the next end is the first one beyond the place. */
			if (one_by_one) until = ends[c->msg % ENDS];
			ssize_t n = send(c->fd, ring + c->off % RING, until - c->off, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n > 0) c->off += n;
			if (c->off < until) c->stalled = 1;
			else if (one_by_one) c->msg++;
			more |= !c->stalled && c->off < to;
		}
		if (c->off < tail) tail = c->off;
	}
	t->tail = tail;
	t->served = to;
	return more;
}

enum { BEAT_MS = 10000, TICKS = 64 };

static int64_t now_ms(void) {
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* beat writes to those whose turn it is: one in TICKS at every tick. It returns how long it is to the next one. */
static int beat(struct thread *t) {
	static const char comment[] = ":heartbeat\n\n";
	int64_t now = now_ms();
	if (!t->tick) t->tick = now + BEAT_MS / TICKS;
	for (; t->tick <= now; t->tick += BEAT_MS / TICKS)
		for (int i = 0; i < (t->n + TICKS - 1) / TICKS && t->n; i++) {
			t->beaten = (t->beaten + 1) % t->n;
			if (send(t->conns[t->beaten]->fd, comment, sizeof comment - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {}
		}
	return t->tick - now;
}

static void *run(void *arg) {
	struct thread *t = arg;
	struct epoll_event events[256];
	for (int busy = 0;;) {
		if (!busy) t->asleep = 1;
		if (!busy && t->served < head) { /* somebody published since, and may not have known that we sleep */
			t->asleep = 0;
			busy = serve(t);
			if (!busy) t->asleep = 1;
		}
		int patience = beats ? beat(t) : 100;
		int n = epoll_wait(t->epoll, events, 256, busy || t->nwaiting ? 0 : patience);
		t->asleep = 0;
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			if (!c) {
				uint64_t count;
				take_connections(t);
				if (read(t->event, &count, sizeof count) < 0) {}
				continue;
			}
			if (events[i].events & EPOLLOUT) c->stalled = 0;
			if (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) take_input(t, c);
		}
		busy = serve(t);
		int waiting = t->nwaiting;
		t->nwaiting = 0;
		for (int i = 0; i < waiting; i++)
			while (publish(t, t->waiting[i])) {}
	}
	return NULL;
}

static void set_up(struct thread *t) {
	int on = 1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(t->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	setsockopt(t->listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
	if (bind(t->listener, (struct sockaddr *)&a, sizeof a) < 0) die("bind");
	if (listen(t->listener, 4096) < 0) die("listen");
	t->epoll = epoll_create1(0);
	t->event = eventfd(0, EFD_NONBLOCK);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
	epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->listener, &e);
	epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->event, &e);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	port = atoi(argv[1]);
	one_by_one = !strcmp(argv[2], "each");
	deep = !strcmp(argv[2], "deep");
	beats = !strcmp(argv[2], "beats");
	struct rlimit files;
	if (!getrlimit(RLIMIT_NOFILE, &files)) close(fcntl(2, F_DUPFD, files.rlim_cur - 1)); /* the kernel makes its table large enough now */
	int fd = memfd_create("ring", 0);
	if (fd < 0 || ftruncate(fd, RING) < 0) die("memfd");
	ring = mmap(NULL, 2 * RING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++)
		if (mmap(ring + i * RING, RING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) die("mmap");
	for (int i = 0; i < THREADS; i++) set_up(&threads[i]);
	publishers = epoll_create1(0);
	pthread_t id;
	pthread_create(&id, NULL, take_publications, NULL);
	for (int i = 1; i < THREADS; i++) pthread_create(&id, NULL, run, &threads[i]);
	run(&threads[0]);
}
