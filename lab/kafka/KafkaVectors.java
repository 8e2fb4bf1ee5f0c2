import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.types.ArrayOf;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/**
 * Messages and batches as the classes of Apache Kafka write them, one JSON object a line, for tests/wire_kafka:
 * bytes, and the values as Kafka's own converters to JSON say them. Random from a seed, the same each time.
 *
 * java -cp 'LIBS/*' KafkaVectors.java MESSAGES.jsonl BATCHES.jsonl
 */
public final class KafkaVectors {
    private static final int[][] VERSIONS = {
        {0, 3, 8}, {1, 4, 11}, {2, 1, 5}, {3, 1, 8}, {4, 0, 2}, {5, 0, 1}, {6, 3, 5}, {18, 0, 2}, {23, 0, 3}};
    private static final int SAMPLES = 3;
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private final Random random = new Random(20);

    public static void main(String[] arguments) throws Exception {
        KafkaVectors vectors = new KafkaVectors();
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(arguments[0]))) {
            for (int[] row : VERSIONS) {
                ApiMessageType type = ApiMessageType.fromApiKey((short) row[0]);
                for (short version = (short) row[1]; version <= row[2]; version++) {
                    for (int sample = 0; sample < SAMPLES; sample++) {
                        vectors.message(out, type, "request", type.newRequest(), type.requestSchemas()[version], version);
                        vectors.message(out, type, "response", type.newResponse(), type.responseSchemas()[version], version);
                    }
                }
            }
        }
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(arguments[1]))) {
            for (int sample = 0; sample < 40; sample++) {
                vectors.batch(out, sample);
            }
        }
    }

    private void message(BufferedWriter out, ApiMessageType type, String kind, ApiMessage message, Schema schema, short version)
            throws Exception {
        Struct struct = struct(schema);
        ByteBuffer buffer = ByteBuffer.allocate(schema.sizeOf(struct));
        schema.write(buffer, struct);
        buffer.flip();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Method write = converter.getMethod("write", message.getClass(), short.class);
        ObjectNode line = MAPPER.createObjectNode();
        line.put("key", type.apiKey()).put("version", version).put("kind", kind).put("bytes", hex(bytes));
        line.set("value", (JsonNode) write.invoke(null, message, version));
        out.write(line + "\n");
    }

    private Struct struct(Schema schema) {
        Struct made = new Struct(schema);
        for (BoundField field : schema.fields()) {
            made.set(field, value(field.def.type));
        }
        return made;
    }

    private Object value(Type type) {
        if (type instanceof Schema) {
            return struct((Schema) type);
        }
        if (type.isArray()) {
            if (type.isNullable() && random.nextInt(4) == 0) {
                return null;
            }
            Object[] elements = new Object[random.nextInt(3)];
            for (int number = 0; number < elements.length; number++) {
                elements[number] = value(type.arrayElementType().get());
            }
            return elements;
        }
        switch (type.toString()) {
            case "INT8": return (byte) random.nextInt();
            case "INT16": return (short) random.nextInt();
            case "INT32": return random.nextInt(3) == 0 ? -1 : random.nextInt();
            case "INT64": return random.nextInt(3) == 0 ? -1L : random.nextLong();
            case "BOOLEAN": return random.nextBoolean();
            case "STRING": return text();
            case "NULLABLE_STRING": return random.nextInt(4) == 0 ? null : text();
            case "RECORDS": return random.nextInt(4) == 0 ? null : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(20)));
            default: throw new IllegalStateException(type.toString());
        }
    }

    private String text() {
        String letters = "abc.-_019ä";
        StringBuilder made = new StringBuilder();
        for (int left = random.nextInt(9); left > 0; left--) {
            made.append(letters.charAt(random.nextInt(letters.length())));
        }
        return made.toString();
    }

    private byte[] bytes(int bound) {
        byte[] made = new byte[random.nextInt(bound)];
        random.nextBytes(made);
        return made;
    }

    private byte[] maybe() {
        return random.nextInt(4) == 0 ? null : bytes(random.nextInt(3) == 0 ? 200 : 12);
    }

    private void batch(BufferedWriter out, int sample) throws Exception {
        long base = random.nextInt(3) == 0 ? Long.MAX_VALUE - 1000 : random.nextInt(1 << 30);
        CompressionType compression = sample % 8 == 7 ? CompressionType.GZIP : CompressionType.NONE;
        boolean transactional = sample % 5 == 4;
        TimestampType times = sample % 6 == 5 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        long producer = transactional ? random.nextInt(1 << 20) : RecordBatch.NO_PRODUCER_ID;
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2, compression, times, base, 1_600_000_000_000L + sample,
            producer, (short) (transactional ? 3 : -1), transactional ? 17 : -1, transactional, false, random.nextInt(1 << 20));
        int count = 1 + random.nextInt(4);
        for (int number = 0; number < count; number++) {
            Header[] headers = new Header[random.nextInt(3)];
            for (int each = 0; each < headers.length; each++) {
                headers[each] = new RecordHeader(text(), maybe());
            }
            long time = 1_600_000_000_000L + (random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(50));
            builder.append(time, maybe(), maybe(), headers);
        }
        MemoryRecords made = builder.build();
        byte[] bytes = new byte[made.sizeInBytes()];
        made.buffer().duplicate().get(bytes);
        MutableRecordBatch batch = made.batches().iterator().next();
        batch.ensureValid();
        ObjectNode line = MAPPER.createObjectNode();
        line.put("bytes", hex(bytes)).put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
        line.put("leader_epoch", batch.partitionLeaderEpoch()).put("crc", batch.checksum()).put("count", batch.countOrNull());
        line.put("producer_id", batch.producerId()).put("producer_epoch", batch.producerEpoch());
        line.put("base_sequence", batch.baseSequence()).put("compression", batch.compressionType().id);
        line.put("append_time", batch.timestampType() == TimestampType.LOG_APPEND_TIME);
        line.put("transactional", batch.isTransactional()).put("max_timestamp", batch.maxTimestamp());
        ArrayNode records = line.putArray("records");
        for (Record record : batch) {
            ObjectNode one = records.addObject();
            one.put("offset", record.offset()).put("timestamp", record.timestamp());
            one.put("key", hex(record.key())).put("value", hex(record.value()));
            ArrayNode headers = one.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value() == null ? null : hex(header.value()));
            }
        }
        out.write(line + "\n");
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return hex(bytes);
    }

    private static String hex(byte[] bytes) {
        StringBuilder made = new StringBuilder();
        for (byte each : bytes) {
            made.append(String.format("%02x", each));
        }
        return made.toString();
    }
}
