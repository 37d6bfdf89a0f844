# The container image, for those who have an engine: docker build -t freshet .
# `make image` makes the same one without; a test holds the two together. The files come from the same program.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=dev
ARG COMMIT=
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go -C packaging run ./image -platforms "$TARGETOS/$TARGETARCH" -version "$VERSION" -commit "$COMMIT" -rootfs /root-of-image \
    && mkdir /data-of-image && mv /root-of-image/data /data-of-image/data

FROM scratch
ARG VERSION=dev
ARG COMMIT=unknown
COPY --from=build /root-of-image/ /
COPY --from=build --chown=65532:65532 /data-of-image/ /
USER 65532:65532
ENV PATH=/bin \
    FRESHET_DISTRIBUTION=container \
    FRESHET_DATA=/data \
    FRESHET_LOG_FORMAT=json
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8000/tcp 8001/tcp 6080/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/bin/freshet", "healthcheck"]
LABEL org.opencontainers.image.title="Freshet" \
      org.opencontainers.image.description="Real-time data distribution over Server-Sent Events" \
      org.opencontainers.image.source="https://github.com/freshet-io/freshet" \
      org.opencontainers.image.documentation="https://github.com/freshet-io/freshet/blob/main/docs/operate.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="Freshet" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
ENTRYPOINT ["/bin/freshet"]
CMD ["serve"]
