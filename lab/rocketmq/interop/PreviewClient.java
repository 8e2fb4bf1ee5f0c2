import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.MigrateLogicalQueueBody;
import org.apache.rocketmq.common.protocol.route.BrokerData;
import org.apache.rocketmq.common.protocol.route.LogicalQueueRouteData;
import org.apache.rocketmq.common.protocol.route.LogicalQueuesInfo;
import org.apache.rocketmq.common.protocol.route.MessageQueueRouteState;
import org.apache.rocketmq.common.protocol.route.TopicRouteData;

/**
 * What a user of the client of 5.0.0-PREVIEW could write: the only published client that knows logical queues.
 *
 * produce NAMESRV TOPIC FIRST COUNT BYTES PAUSE_MS
 *     one JSON line for each message, as LabClient writes them, which names several topics, too; 0 messages: until
 *     its input ends
 * read NAMESRV TOPIC IDLE_MS [follow]
 *     all queues from their beginning at explicit offsets (its consumers keep none of logical queues), until nothing
 *     comes for a while; follow: not before its input ends
 * admin NAMESRV
 *     one command in each line of its input, one line of JSON for each answer; see answer()
 * first NAMESRV TOPIC
 *     a line of JSON: what comes of its first question for logical queues in a fresh JVM
 *
 * A fault ends it with exit code 1.
 */
public class PreviewClient {
    private static final int TIMEOUT_MS = 20_000;
    private static final int BATCH = 32;

    private static volatile boolean inputEnded = false;

    public static void main(String[] args) {
        try {
            switch (args[0]) {
                case "produce":
                    decoders();
                    produce(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                            Integer.parseInt(args[5]), Long.parseLong(args[6]));
                    break;
                case "read":
                    decoders();
                    read(args[1], args[2], Long.parseLong(args[3]), args.length > 4);
                    break;
                case "admin":
                    decoders();
                    admin(args[1]);
                    break;
                case "first":
                    first(args[1], args[2]);
                    break;
                default:
                    throw new IllegalArgumentException(args[0]);
            }
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
        System.out.flush();
        System.exit(0);
    }

    /** Static initialisers that register how these are read; the client itself runs them too late. */
    private static void decoders() throws ClassNotFoundException {
        Class.forName("org.apache.rocketmq.common.protocol.route.LogicalQueuesInfoUnordered");
        Class.forName("org.apache.rocketmq.common.protocol.route.LogicalQueuesInfo");
    }

    private static void watchInput() {
        Thread watching = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException ended) {
                ended.printStackTrace();
            }
            inputEnded = true;
        });
        watching.setDaemon(true);
        watching.start();
    }

    private static DefaultMQProducer producer(String namesrv, String group) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(namesrv);
        producer.setVipChannelEnabled(false);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setSendMsgTimeout(TIMEOUT_MS);
        producer.start();
        return producer;
    }

    private static void produce(String namesrv, String topic, int first, int count, int bytes, long pause)
            throws Exception {
        watchInput();
        DefaultMQProducer producer = producer(namesrv, "preview-producer");
        for (int number = first; count == 0 ? !inputEnded : number < first + count; number++) {
            String key = "k" + number;
            StringBuilder body = new StringBuilder(key).append(' ');
            while (body.length() < bytes) {
                body.append((char) ('a' + number % 26));
            }
            String[] topics = topic.split(",");
            Message message = new Message(topics[number % topics.length], "lab", key, body.toString().getBytes(StandardCharsets.UTF_8));
            long begun = System.currentTimeMillis();
            try {
                SendResult result = producer.send(message);
                say(key, result.getSendStatus().name(), result.getMessageQueue(), result.getQueueOffset(), begun);
            } catch (Exception error) {
                error.printStackTrace();
                String who = error instanceof MQBrokerException ? ((MQBrokerException) error).getBrokerAddr() : null;
                say(key, error.getClass().getSimpleName(), new MessageQueue(topic, String.valueOf(who), -1), -1, begun);
            }
            if (pause > 0) {
                Thread.sleep(pause);
            }
        }
        producer.shutdown();
    }

    private static void read(String namesrv, String topic, long idle, boolean follow) throws Exception {
        watchInput();
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("preview-reader");
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.start();
        Map<MessageQueue, Long> offsets = new TreeMap<>();
        long last = System.currentTimeMillis();
        long looked = 0;
        while ((follow && !inputEnded) || System.currentTimeMillis() - last < idle) {
            if (System.currentTimeMillis() - looked > 1000) {
                for (String each : topic.split(",")) {
                    for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(each)) {
                        if (!offsets.containsKey(queue)) {
                            offsets.put(queue, consumer.minOffset(queue));
                        }
                    }
                }
                looked = System.currentTimeMillis();
            }
            boolean found = false;
            for (Map.Entry<MessageQueue, Long> each : offsets.entrySet()) {
                found |= pull(consumer, each);
            }
            if (found) {
                last = System.currentTimeMillis();
            } else {
                Thread.sleep(20);
            }
        }
        consumer.shutdown();
    }

    private static boolean pull(DefaultMQPullConsumer consumer, Map.Entry<MessageQueue, Long> place) {
        try {
            PullResult result = consumer.pull(place.getKey(), "*", place.getValue(), BATCH);
            List<MessageExt> messages = result.getMsgFoundList();
            for (MessageExt message : messages == null ? new ArrayList<MessageExt>() : messages) {
                say(message.getKeys(), "READ", place.getKey(), message.getQueueOffset(), System.currentTimeMillis());
            }
            long next = result.getNextBeginOffset();
            if (next < place.getValue()) {
                say("", "BACK", place.getKey(), next, System.currentTimeMillis());
                return false;
            }
            boolean moved = next > place.getValue();
            place.setValue(next);
            return moved;
        } catch (Exception error) {
            error.printStackTrace();
            say("", error.getClass().getSimpleName(), place.getKey(), place.getValue(), System.currentTimeMillis());
            return false;
        }
    }

    private static void first(String namesrv, String topic) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("preview-first");
        consumer.setNamesrvAddr(namesrv);
        consumer.start();
        Map<String, Object> said = new TreeMap<>();
        try {
            said.put("answer", consumer.fetchSubscribeMessageQueues(topic).size());
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            said.put("error", cause.getClass().getSimpleName());
        }
        System.out.println(JSON.toJSONString(said));
        consumer.shutdown();
    }

    private static void say(String key, String status, MessageQueue queue, long offset, long begun) {
        System.out.println("{\"key\":\"" + key + "\",\"status\":\"" + status + "\",\"queue\":" + queue.getQueueId()
                + ",\"offset\":" + offset + ",\"broker\":\"" + queue.getBrokerName() + "\",\"begun_ms\":" + begun
                + ",\"at_ms\":" + System.currentTimeMillis() + ",\"stored\":\"\"}");
        System.out.flush();
    }

    private static void admin(String namesrv) throws Exception {
        DefaultMQProducer producer = producer(namesrv, "preview-admin");
        MQClientAPIImpl calls = producer.getDefaultMQProducerImpl().getmQClientFactory().getMQClientAPIImpl();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> said = new TreeMap<>();
            try {
                said.put("answer", answer(calls, namesrv, line.split(" ")));
            } catch (MQBrokerException refused) {
                said.put("code", refused.getResponseCode());
                said.put("error", String.valueOf(refused.getErrorMessage()));
            } catch (Throwable error) {
                error.printStackTrace();
                Throwable cause = error.getCause() == null ? error : error.getCause();
                said.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            System.out.println(JSON.toJSONString(said, SerializerFeature.WriteMapNullValue,
                    SerializerFeature.WriteNonStringKeyAsString,
                    SerializerFeature.DisableCircularReferenceDetect));
            System.out.flush();
        }
        producer.shutdown();
    }

    private static Object answer(MQClientAPIImpl calls, String namesrv, String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                TopicConfig config = new TopicConfig(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[3]), 6);
                calls.createTopic(words[1], "TBW102", config, TIMEOUT_MS);
                return null;
            case "map":
                calls.updateTopicLogicalQueue(words[1], words[2], Integer.parseInt(words[3]),
                        Integer.parseInt(words[4]), TIMEOUT_MS);
                return null;
            case "unmap":
                calls.deleteTopicLogicalQueueMapping(words[1], words[2], TIMEOUT_MS);
                return null;
            case "query":
                return calls.queryTopicLogicalQueue(words[1], words[2], TIMEOUT_MS);
            case "seal":
                return calls.sealTopicLogicalQueue(words[1],
                        own(calls, words[1], words[2], Integer.parseInt(words[3]), false), TIMEOUT_MS);
            case "reuse":
                return calls.reuseTopicLogicalQueue(words[1], words[2], Integer.parseInt(words[3]),
                        Integer.parseInt(words[4]), MessageQueueRouteState.valueOf(words[5]), TIMEOUT_MS);
            case "make":
                return calls.createMessageQueueForLogicalQueue(words[1], words[2], Integer.parseInt(words[3]),
                        MessageQueueRouteState.valueOf(words[4]), TIMEOUT_MS);
            case "migrate":
                return migrate(calls, words[1], Integer.parseInt(words[2]), words[3], words.length > 4);
            case "route":
                return calls.getTopicRouteInfoFromNameServer(words[1], TIMEOUT_MS, true, null);
            case "queues":
                return queues(namesrv, words[1], words.length > 2 ? Long.parseLong(words[2]) : 0);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static LogicalQueueRouteData own(MQClientAPIImpl calls, String address, String topic, int index,
            boolean written) throws Exception {
        LogicalQueueRouteData found = null;
        for (LogicalQueueRouteData each : held(calls, address, topic).getOrDefault(index, new ArrayList<>())) {
            if (!written || each.isWritable()) {
                found = each;
            }
        }
        return found;
    }

    private static LogicalQueuesInfo held(MQClientAPIImpl calls, String address, String topic) throws Exception {
        LogicalQueuesInfo info = calls.queryTopicLogicalQueue(address, topic, TIMEOUT_MS);
        return info == null ? new LogicalQueuesInfo() : info;
    }

    /** What the command migrateTopicLogicalQueue of that release does with these calls; twice: 417 and 418 again. */
    private static Map<String, Object> migrate(MQClientAPIImpl calls, String topic, int index, String broker,
            boolean twice) throws Exception {
        Map<String, Object> said = new TreeMap<>();
        TopicRouteData route = calls.getTopicRouteInfoFromNameServer(topic, TIMEOUT_MS, true, null);
        if (route.getLogicalQueuesInfo() == null) {
            throw new IllegalStateException("topic not enabled logical queue");
        }
        Map<String, BrokerData> brokers = calls.getBrokerClusterInfo(TIMEOUT_MS).getBrokerAddrTable();
        LogicalQueueRouteData from = null;
        TreeSet<String> held = new TreeSet<>();
        for (LogicalQueueRouteData each : route.getLogicalQueuesInfo().get(index)) {
            held.add(each.getBrokerName());
            from = each.isWritable() ? each : from;
        }
        String source = brokers.get(from.getBrokerName()).selectBrokerAddr();
        String target = brokers.get(broker).selectBrokerAddr();
        List<String> refused = new ArrayList<>();
        LogicalQueueRouteData to = reused(calls, target, topic, index, refused);
        said.put("refused", refused);
        said.put("reused", to != null);
        if (to == null) {
            to = calls.createMessageQueueForLogicalQueue(target, topic, index, MessageQueueRouteState.WriteOnly,
                    TIMEOUT_MS);
        }
        MigrateLogicalQueueBody prepared = calls.migrateTopicLogicalQueuePrepare(source, from, to, TIMEOUT_MS);
        if (twice) {
            MigrateLogicalQueueBody again = calls.migrateTopicLogicalQueuePrepare(source, from, to, TIMEOUT_MS);
            said.put("same", JSON.toJSONString(again).equals(JSON.toJSONString(prepared)));
        }
        MigrateLogicalQueueBody committed = calls.migrateTopicLogicalQueueCommit(target,
                prepared.getFromQueueRouteData(), prepared.getToQueueRouteData(), TIMEOUT_MS);
        if (twice) {
            calls.migrateTopicLogicalQueueCommit(target, prepared.getFromQueueRouteData(),
                    prepared.getToQueueRouteData(), TIMEOUT_MS);
        }
        held.remove(broker);
        for (String name : held) {
            calls.migrateTopicLogicalQueueNotify(brokers.get(name).selectBrokerAddr(),
                    prepared.getFromQueueRouteData(), committed.getToQueueRouteData(), TIMEOUT_MS);
        }
        said.put("from", prepared.getFromQueueRouteData());
        said.put("to", committed.getToQueueRouteData());
        return said;
    }

    /** The first message queue of a broker that may be taken again; who refuses is asked for the next one. */
    private static LogicalQueueRouteData reused(MQClientAPIImpl calls, String target, String topic, int index,
            List<String> refused) throws Exception {
        Map<Integer, Boolean> written = new TreeMap<>();
        LogicalQueuesInfo info = held(calls, target, topic);
        for (List<LogicalQueueRouteData> each : info.values()) {
            for (LogicalQueueRouteData segment : each) {
                written.merge(segment.getQueueId(), segment.isWritable(), Boolean::logicalOr);
            }
        }
        for (Map.Entry<Integer, Boolean> each : written.entrySet()) {
            if (each.getValue()) {
                continue;
            }
            try {
                return calls.reuseTopicLogicalQueue(target, topic, each.getKey(), index,
                        MessageQueueRouteState.WriteOnly, TIMEOUT_MS);
            } catch (MQBrokerException error) {
                refused.add("queue " + each.getKey() + ": " + error.getErrorMessage());
            }
        }
        return null;
    }

    private static Object queues(String namesrv, String topic, long since) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("preview-asker");
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.setInstanceName("asker");
        consumer.start();
        List<Object> said = new ArrayList<>();
        for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
            Map<String, Object> one = new HashMap<>();
            one.put("broker", queue.getBrokerName());
            one.put("queue", queue.getQueueId());
            one.put("min", consumer.minOffset(queue));
            one.put("max", consumer.maxOffset(queue));
            one.put("since", consumer.searchOffset(queue, since));
            one.put("until", consumer.searchOffset(queue, System.currentTimeMillis()));
            one.put("committed", consumer.fetchConsumeOffset(queue, true));
            said.add(one);
        }
        consumer.shutdown();
        return said;
    }
}
